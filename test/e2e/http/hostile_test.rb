# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "corpus/hostile"

# Ten thousand hostile requests. HOSTILE_SEED repeats a run.
class HostileTest < E2ETest
  CLIENTS = 8
  SEED = Integer(ENV.fetch("HOSTILE_SEED", Random.new_seed % 1_000_000))
  COUNT = LEVEL == "quick" ? 800 : 10_000
  MAY_GROW = 16 * MIB
  # Kinds that are a whole request: the client reads on, and should get an error.
  WHOLE = %i[refused poisoned oversized].freeze
  OPTIONS = ["--max-body", "1m", "--head-timeout", "3s", "--body-timeout", "3s"].freeze

  def test_each_is_refused_or_closed_and_the_server_is_as_before
    server = serve("probe", *OPTIONS)
    @closed_without_a_word = Queue.new
    files = server.open_files
    attack(server, COUNT / 10, SEED + 1) # so that buffers have grown to their size
    memory = server.memory_bytes
    wrong = attack(server, COUNT, SEED)
    assert_empty wrong, "HOSTILE_SEED=#{SEED}\n#{wrong.first(20).join("\n")}"
    assert_operator @closed_without_a_word.length, :<, COUNT / 50
    assert_equal 200, server.get("/").status
    assert_empty refused_that_reached_ruby(server)
    wait_for("close of all files; there were #{files}") { server.open_files <= files }
    assert_operator server.memory_bytes - memory, :<, MAY_GROW
  end

  # Clients that connect and send nothing, or stop in the middle, all at once.
  def test_many_silent_clients
    server = serve("probe", *OPTIONS)
    before = server.open_files
    silent = Array.new(300) do |number|
      server.connect.tap { |connection| connection.write("POST /refused HTTP/1.1\r\nHost: te"[0, number % 30]) }
    end
    assert_operator timings(50) { server.get("/") }.last, :<, 1
    # Clients that have sent part of a head run into its time limit; the others may stay idle.
    said_nothing, began = silent.partition.with_index { |_, number| (number % 30).zero? }
    began.each { |connection| connection.read_all(within: 20) }
    said_nothing.each(&:close)
    wait_for("close of all files") { server.open_files <= before }
    assert_empty refused_that_reached_ruby(server)
  ensure
    silent&.each(&:close)
  end

  private

  # Sends `count` hostile requests and returns descriptions of the answers that were wrong.
  def attack(server, count, seed)
    concurrently(CLIENTS) do |client|
      supply = Corpus::Hostile.new((seed * CLIENTS) + client)
      Array.new(count / CLIENTS) { send_one(server, supply.next) }.compact
    end.flatten
  end

  def send_one(server, request)
    server.connect do |connection|
      answers = answers_to(connection, request)
      @closed_without_a_word << request if answers.empty? && WHOLE.include?(request.kind)
      odd = answers.reject { |status| request.statuses.include?(status) }
      "#{request.kind}: #{odd.inspect} to #{request.bytes[0, 300].inspect}" unless odd.empty?
    end
  end

  def answers_to(connection, request)
    connection.write(request.bytes)
    return leave(connection) if request.abrupt

    connection.socket.close_write
    connection.read_all(within: 10).map(&:status)
  rescue Errno::ECONNRESET, Errno::EPIPE, Errno::ENOTCONN
    [] # closed
  rescue HttpConnection::TimedOut, HttpConnection::BadAnswer, EOFError => e
    [e.message]
  end

  # Closes by a reset, without reading what has come.
  def leave(connection)
    connection.socket.setsockopt(Socket::Option.linger(true, 0))
    []
  end

  def refused_that_reached_ruby(server)
    JSON.parse(server.get("/count?targets=1").body)["targets"].select { |target| target.include?(Corpus::REFUSED_PATH) }
  end
end
