# frozen_string_literal: true

ENV["MT_CPU"] ||= "5" # its tests mostly wait

require_relative "../../support/e2e_test"
require_relative "../../support/load"

# Requests that exceed `request_timeout` and do not end: the client gets 504, the log says where the request is, and its
# worker is replaced without another request failing.
class RequestTimeoutsTest < E2ETest
  parallelize_me!

  # Ways of being stuck. `crypt` computes with the GVL; Fiddle's functions release it unless they need it.
  APP = <<~'RUBY'
    require "fiddle"
    require "socket"
    LIBC = Fiddle.dlopen(nil)
    SLEEP = Fiddle::Function.new(LIBC["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
    SLEEP_WITH_GVL = Fiddle::Function.new(LIBC["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    LOCK = Mutex.new.tap(&:lock)
    SILENT = TCPServer.new("127.0.0.1", 0)
    WAYS = {
      "sleep" => -> { sleep },
      "loop" => -> { loop {} },
      "native_with_gvl" => -> { "x".crypt("$6$rounds=900000000$saltsalt") },
      "system_call_with_gvl" => -> { SLEEP_WITH_GVL.call(1000) },
      "native_without_gvl" => -> { SLEEP.call(1000) },
      "mutex" => -> { LOCK.synchronize {} },
      "socket" => -> { TCPSocket.new("127.0.0.1", SILENT.addr[1]).read(1) },
      "stop" => -> { Thread.stop }
    }.freeze

    run lambda { |env|
      way = env["PATH_INFO"].delete_prefix("/")
      case way
      when "slow", "slow/" then sleep Float(env["QUERY_STRING"])
      when "held" then sleep 0.01 until File.exist?(File.join(__dir__, "release"))
      when "swallows"
        begin
          sleep
        rescue
          retry
        end
      when "swallows_all"
        begin
          sleep
        rescue Exception
          retry
        end
      when "time" then body = env.values_at("highball.deadline", "HTTP_X_REQUEST_TIMEOUT").inspect
      when "hostile"
        Thread.current.define_singleton_method(:backtrace) { Array.new(10_000) { "\e[2J\nworker=1 forged#{"x" * 500}" } }
        sleep
      else WAYS[way]&.call
      end
      [200, { "content-type" => "text/plain" }, [body || Process.pid.to_s]]
    }
  RUBY

  # What the log says of each: what the request did, and where.
  IN_RUBY = {
    "sleep" => [/it sleeps/, /in .(Kernel#)?sleep'/],
    "loop" => [/it computes \(\d+% CPU\)/, /config.ru:\d+:in/],
    "mutex" => [/it waits for a mutex/, /synchronize'/],
    "stop" => [/Thread\.stop/, /stop'/]
  }.freeze
  OUTSIDE_OF_RUBY = {
    "socket" => [/it waits/, /read'/],
    "native_without_gvl" => [/it waits.*call/, /config.ru:\d+:in/],
    "native_with_gvl" => [/it holds the GVL in native code \(\d+% CPU.*no backtrace/],
    "system_call_with_gvl" => [/it holds the GVL in (the system call|native code).*no backtrace/]
  }.freeze

  def test_requests_that_are_stuck_in_ruby = assert_all_replaced(IN_RUBY)

  def test_requests_that_are_stuck_outside_of_ruby = assert_all_replaced(OUTSIDE_OF_RUBY)

  def test_a_request_that_ends_soon_after_its_time_limit_costs_no_worker
    server = serve_app(workers: 1)
    workers = server.worker_pids
    assert_equal 504, server.get("/slow?0.5").status
    wait_for("the thread to come back") { in_flight(server).zero? }
    assert_equal 200, server.get("/").status
    assert_equal workers, server.worker_pids
    refute_match(/replacing the worker/, server.log)
  end

  def test_a_sibling_finishes
    configuration = <<~TOML
      request_timeout = "300ms"
      request_timeouts = { "/held" = "none" }
      drain_timeout = "60s"
    TOML
    folder = folder_with("config.ru" => APP, "config/highball.toml" => configuration)
    server = serve(folder, workers: 1)
    old = server.worker_pids.first
    sibling = Thread.new { server.get("/held", within: 60) }
    wait_for("the sibling to begin") { in_flight(server) == 1 }
    assert_equal 504, server.get("/sleep").status
    wait_for("the other worker", within: 30) { server.log.include?("a new worker has taken over") }
    File.write(File.join(folder, "release"), "")
    assert_equal [200, old.to_s], [sibling.value.status, sibling.value.body]
    wait_for("the stuck one to end", within: 30) { server.worker_pids.none?(old) }
    assert_equal 200, server.get("/").status
  end

  def test_the_client_of_a_stuck_request_leaves_first
    server = serve_app(workers: 1)
    old = server.worker_pids.first
    server.connect do |connection|
      connection.send_request("GET", "/sleep")
      wait_for("the worker to begin it") { in_flight(server) == 1 }
    end
    wait_for("the other worker") { (server.worker_pids - [old]).any? && !server.worker_pids.include?(old) }
    assert_match(%r{exceeded its time limit and goes on.*GET /sleep}, server.log)
  end

  def test_every_worker_is_stuck
    server = serve_app(workers: 2, threads: 3)
    old = server.worker_pids
    assert_equal [504], concurrently(6) { server.get("/loop", within: 20).status }.uniq
    wait_for("an answer", within: 20) { server.get("/", within: 20).status == 200 }
    wait_for("other workers", within: 20) { (old & server.worker_pids).empty? && server.worker_pids.length == 2 }
  end

  def test_what_an_application_says_of_its_threads_is_escaped_and_cut
    server = serve_app(workers: 1)
    assert_equal 504, server.get("/hostile").status
    wait_for("the log") { server.log.include?("goes on in its worker") }
    refute_includes server.log, "\e[2J"
    assert_operator server.log.lines.map(&:length).max, :<, 12_000
    refute_match(/^worker=1 forged/, server.log)
  end

  def test_an_application_whose_every_request_is_stuck_does_not_get_new_workers_all_the_time
    server = serve_app(workers: 1, limit: "100ms")
    replaced = -> { server.log.scan("a new one starts first").length }
    wait_for("the log to say that it has to wait", within: 20) do
      server.get("/sleep", within: 20)
      server.log.include?("many workers were replaced lately")
    end
    assert_operator replaced.call, :<=, 2
    assert_equal 1, server.log.scan("many workers were replaced lately").length
  end

  def test_an_application_that_allows_it_is_interrupted_and_keeps_its_worker
    server = serve_app("--timeout-interrupts", "on", workers: 1)
    workers = server.worker_pids
    ways = %w[sleep mutex socket stop swallows]
    concurrently(ways.length) { |index| assert_equal 504, server.get("/#{ways[index]}").status }
    wait_for("the threads to come back") { in_flight(server).zero? }
    assert_match(/Highball::RequestTimeout/, server.log)
    assert_equal 200, server.get("/").status
    assert_equal workers, server.worker_pids
  end

  def test_a_worker_that_an_interruption_does_not_help_is_replaced
    server = serve_app("--timeout-interrupts", "on", workers: 1)
    old = server.worker_pids
    assert_equal 504, server.get("/swallows_all").status
    wait_for("another worker") { (server.worker_pids & old).empty? }
    assert_equal 200, server.get("/").status
  end

  def test_paths_have_their_own_times
    configuration = <<~TOML
      request_timeout = "300ms"
      request_timeouts = { "/slow" = "10s", "/ti*" = "none" }
      request_timeout_header = "X-Request-Timeout"
    TOML
    server = serve(folder_with("config.ru" => APP, "config/highball.toml" => configuration))
    assert_equal 200, server.get("/slow?0.9").status
    assert_equal 504, server.get("/slow/?0.9").status
    assert_equal "[nil, nil]", server.get("/time", { "X-Request-Timeout" => "7" }).body, "no limit, and no forged one"
  end

  def test_the_application_knows_how_much_time_is_left
    server = serve_app("--request-timeout-header", "X-Request-Timeout", workers: 1, limit: "20s")
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    body = server.get("/time", { "X-Request-Timeout" => "7000" }).body
    deadline, left = body.match(/\A\[([\d.]+), "([\d.]+)"\]\z/).captures.map { |text| Float(text) }
    assert_in_delta now + 20, deadline, 1
    assert_in_delta 20, left, 1
  end

  private

  def serve_app(*options, workers:, threads: 5, limit: "300ms")
    folder = folder_with("config.ru" => APP)
    serve(folder, *options, "--request-timeout", limit, "--drain-timeout", "3s", workers: workers, threads: threads)
  end

  def in_flight(server) = server.status["workers"].sum { |worker| worker["in_flight"] }

  def assert_all_replaced(ways)
    ways = ways.to_a
    concurrently(ways.length) { |index| assert_replaced(*ways[index].flatten) }
  end

  # A request of this way among 1,000 others: it gets 504, the log says what it did, its worker is replaced, and no
  # other request fails.
  def assert_replaced(way, doing, backtrace = nil)
    server = serve_app(workers: 2)
    old = server.worker_pids
    outcomes = Load.during(server, clients: 2) do |load|
      began = Deadline.now
      assert_equal 504, server.get("/#{way}", within: 10).status
      assert_includes 0.2..3.0, Deadline.now - began
      wait_for("the worker to be replaced", within: 15) { server.log.include?("a new worker has taken over") }
      wait_for("the worker to end", within: 15) { old.count { |pid| File.exist?("/proc/#{pid}") } == 1 }
      wait_for("1,000 answers", within: 15) { load.count >= 1000 }
    end
    assert_equal [200], outcomes.map(&:result).uniq
    assert_match(%r{exceeded its time limit and goes on.*GET /#{way}}, server.log)
    assert_match(doing, server.log)
    assert_match(backtrace, server.log) if backtrace
    assert_reported(server, way, doing)
  end

  def assert_reported(server, way, doing)
    overrun = server.status["overruns"].last
    assert_equal "GET /#{way}", overrun["request"]
    assert_match(doing, overrun["doing"])
  end
end
