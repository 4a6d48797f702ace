# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/fiber_app"
require_relative "../../support/fiber_tries"
require_relative "../../support/postgres_server"
require_relative "../../support/redis_server"

# Libraries that wait, in requests on fibers: each of 20 requests waits for a while, and they do so at the same time.
class FiberLibrariesTest < E2ETest
  AT_A_TIME = 20
  # Long: the machine may be busy. One after the other, they would take 20 × 0.3 s.
  WITHIN = 5

  RESULTS = {
    net_http: "slow", open3: "captured", backquote: "backquoted", system_call: "3", process_wait: "4",
    timeout: "timed out", timeout_of_read: "timed out", queue: "popped", sized_queue: "pushed", mutex: "locked",
    condition: "signalled", condition_with_a_time: "over", thread: "joined", monitor: "entered", select: "true",
    blocking_pipe: "piped", large_pipe: "1000000", closed: "closed", enumerator: "next", file: "written",
    udp: "datagram", tcp: "line",
    dns: "true", no_name: "true", sqlite3: "42"
  }.freeze

  # Ruby 3.1 runs an Enumerator's block in a fiber that its scheduler is not asked about.
  IN_TURNS = RUBY_VERSION < "3.2" ? %i[enumerator] : []

  def test_libraries
    start
    RESULTS.each do |name, expected|
      took = timings(1) { assert_equal [expected], ask(name), name }.first
      assert_operator took, :<, WITHIN, name unless IN_TURNS.include?(name)
    end
  end

  def test_select_with_a_time
    start
    assert_equal %w[nil], ask(:select_with_a_time)
  end

  def test_openssl
    start
    assert_equal %w[TLS], ask(:openssl, 3)
  end

  def test_redis
    redis = RedisServer.new
    start("REDIS_URL" => redis.url)
    took = timings(1) { assert_equal %w[nil], ask(:redis) }.first
    assert_operator took, :<, 10
  ensure
    redis&.finish
  end

  def test_pg
    skip "no PostgreSQL is installed" unless PostgresServer.programs
    database = PostgresServer.new
    start("DATABASE_URL" => database.url)
    took = timings(1) { assert_equal %w[row], ask(:pg) }.first
    assert_operator took, :<, WITHIN
  ensure
    @server&.stop
    database&.finish
  end

  private

  def start(env = {})
    config = FiberTries::CONFIG + FiberApp::CONFIG
    @server = serve(folder_with("config.ru" => config), "--fibers", "/on/*", workers: 1, env: env)
  end

  # The different answers to some requests at the same time.
  def ask(name, count = AT_A_TIME)
    asked = Array.new(count) { @server.connect.tap { |one| one.send_request("GET", "/on/try?#{name}") } }
    asked.map { |connection| connection.read_response.body }.uniq
  end
end
