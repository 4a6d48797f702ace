# frozen_string_literal: true

require_relative "../../support/e2e_test"

# A worker that writes over every byte it shares with the server harms only its own requests, and is replaced.
class MisbehavingWorkerTest < E2ETest
  KINDS = %w[/scribble /scribble /babble /scribble /babble /scribble].freeze
  CLIENTS = 6

  def test_the_other_workers_serve_correctly
    server = serve("scribbler", workers: 3, threads: 1)
    wait_for("all workers") { server.status["workers"].count { |worker| worker["state"] == "serving" } == 3 }
    files = server.open_files
    misbehaving = []
    answers = asking(server) do
      KINDS.each { |kind| misbehaving << make_one_misbehave(server, kind) }
    end
    wrong = answers.reject { |token, answer| right?(token, answer, misbehaving) }
    assert_empty wrong.first(5)
    assert_operator answers.length, :>, 500
    assert_equal 3, server.worker_pids.length
    assert_equal 200, server.get("/").status
    wait_for("as many open files as before") { server.open_files <= files }
  end

  private

  # Its pid, after it has been replaced. (POST, because a GET whose worker dies is repeated by another.)
  def make_one_misbehave(server, kind)
    before = server.worker_pids
    begin
      server.request("POST", kind, {}, "", within: 30)
    rescue EOFError, SystemCallError, HttpConnection::BadAnswer
      nil # a misbehaving worker may answer anything
    end
    gone = nil
    wait_for("the misbehaving worker to be replaced", within: 20) do
      gone = before - server.worker_pids
      gone.any? && server.worker_pids.length == 3
    end
    assert_equal 1, gone.length, "only the misbehaving worker is replaced"
    gone.first
  end

  # The other workers answer with their pid and the token of the request, or not at all.
  def right?(token, answer, misbehaving)
    match = /\A(\d+) (\S*)\n\z/.match(answer)
    return true if match.nil? || misbehaving.include?(match[1].to_i)

    match[2] == token
  end

  # Pairs of a token and its answer, from clients that send requests while the block runs.
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
