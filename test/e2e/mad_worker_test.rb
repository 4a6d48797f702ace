# frozen_string_literal: true

require_relative "../support/e2e_test"

# A worker that writes over every byte it shares with the server: it harms its own requests only, and is replaced.
class MadWorkerTest < E2ETest
  KINDS = %w[/scribble /scribble /babble /scribble /babble /scribble].freeze
  CLIENTS = 6

  def test_others_serve_rightly_while_one_goes_mad
    server = serve("scribbler", workers: 3, threads: 1)
    wait_for("all workers") { server.status["workers"].count { |worker| worker["state"] == "serving" } == 3 }
    files = server.open_files
    mad = []
    answers = asking(server) do
      KINDS.each { |kind| mad << drive_one_mad(server, kind) }
    end
    wrong = answers.reject { |token, answer| right?(token, answer, mad) }
    assert_empty wrong.first(5)
    assert_operator answers.length, :>, 500
    assert_equal 3, server.worker_pids.length
    assert_equal 200, server.get("/").status
    wait_for("as many open files as before") { server.open_files <= files }
  end

  private

  # Its pid, once it has been replaced. (POST, because a GET whose worker dies is given to another.)
  def drive_one_mad(server, kind)
    before = server.worker_pids
    begin
      server.request("POST", kind, {}, "", within: 30)
    rescue EOFError, SystemCallError, HttpConnection::BadAnswer
      nil # what a mad worker answers is anybody's guess
    end
    gone = nil
    wait_for("the mad worker to be replaced", within: 20) do
      gone = before - server.worker_pids
      gone.any? && server.worker_pids.length == 3
    end
    assert_equal 1, gone.length, "only the mad worker is replaced"
    gone.first
  end

  # A worker that is not mad answers with its pid and the token that it was sent, or not at all.
  def right?(token, answer, mad)
    match = /\A(\d+) (\S*)\n\z/.match(answer)
    return true if match.nil? || mad.include?(match[1].to_i)

    match[2] == token
  end

  # Pairs of a token and the answer to it, from clients that ask while the block runs.
  def asking(server)
    stopping = false
    clients = Array.new(CLIENTS) { |client| Thread.new { ask(server, client) { stopping } } }
    yield
    stopping = true
    clients.flat_map(&:value)
  ensure
    clients&.each(&:kill)
  end

  def ask(server, client)
    answers = []
    connection = nil
    until yield
      token = "#{client}-#{answers.length}"
      begin
        connection ||= server.connect
        answer = connection.request("GET", "/", { "X-Token" => token }, within: 30)
        answers << [token, answer.status == 200 ? answer.body : answer.status.to_s]
        connection = connection.close if answer["connection"] == "close"
      rescue EOFError, SystemCallError, HttpConnection::BadAnswer => e
        answers << [token, e.class.name]
        connection = connection&.close
      end
    end
    answers
  ensure
    connection&.close
  end
end
