# frozen_string_literal: true

# marks: debian13

require "json"
require_relative "../../support/e2e_test"
require_relative "../../support/fiber_app"
require_relative "../../support/http2_client"
require_relative "../../support/open_stream"

# Requests that run on fibers.
class FibersTest < E2ETest
  LINES = Array.new(10) { |number| "line #{number}\n" }.join

  def test_requests_that_wait_take_no_thread
    start
    sleeping = Array.new(100) { request("/on/sleep?1") }
    took = timings(20) { assert_equal "hello", @server.get("/hello").body }
    assert_operator percentile(took, 0.9), :<, 0.5
    ended = timings(1) { sleeping.each { |connection| assert_equal "slept", connection.read_response.body } }
    assert_operator ended.first, :<, 10
    assert_equal 0, open_fibers
  end

  def test_only_the_named_paths_run_on_fibers
    start
    on = JSON.parse(@server.get("/on/where").body)
    assert_equal ["worker 1 fibers", "Highball::FiberScheduler", false], on.values_at("thread", "scheduler", "hijack")
    assert_nil JSON.parse(@server.get("/where").body)["scheduler"]
    asked = @server.get("/on/where", WEB_SOCKET)
    assert_nil JSON.parse(asked.body)["scheduler"], "a WebSocket's application may take the connection over"
  end
  WEB_SOCKET = { "Connection" => "Upgrade", "Upgrade" => "websocket", "Sec-WebSocket-Version" => "13",
                 "Sec-WebSocket-Key" => "dGhlIHNhbXBsZSBub25jZQ==" }.freeze

  def test_every_form_of_answer
    start
    bodies = { "/on/large" => ["x" * 500_000, "y" * 500_000].join, "/on/lines" => LINES, "/on/lines?call" => LINES,
               "/on/file" => FiberApp::CONFIG, "/on/named" => FiberApp::CONFIG,
               "/on/after" => "after", "/on/fork" => "7" }
    bodies.each do |path, body|
      assert_equal body, @server.get(path).body, path
    end
    wait_for("the callback") { state["after_reply"] == 1 }
    assert_equal "5", @server.get("/on/hello")["content-length"]
  end

  def test_methods_and_bodies
    start
    # A large one comes on a thread.
    ["hallo", "x" * 300_000].each { |text| assert_equal text, @server.request("POST", "/on/echo", {}, text).body }
    answer = @server.request("HEAD", "/on/hello")
    assert_equal [200, ""], [answer.status, answer.body.to_s]
  end

  def test_lines_come_as_they_are_written
    start
    streams = Array.new(50) { |number| OpenStream.of(@server, "/on/lines#{'?call' if number.odd?}") }
    assert_equal ["line 0\n"], streams.map(&:first).uniq
    assert_equal [[LINES.delete_prefix("line 0\n"), true]], streams.map(&:rest).uniq
    wait_for("all bodies to be closed") { state["closed"] == 25 && state["ended"] == 50 }
  end

  def test_http2
    start("--http2-cleartext", "on")
    client = Http2Client.tcp(@server.port).greet
    numbers = Array.new(20) { |number| (2 * number) + 1 }
    numbers.each { |number| client.send_request(number, "GET", "/on/lines") }
    answers = numbers.map { |number| client.answer(number) }
    assert_equal [[200, LINES, nil]], answers.map { |one| [one.status, one.body, one.reset] }.uniq
  end

  def test_what_fails
    start
    %w[/on/raise /on/exit /on/throw /on/large_head /on/hijack?].each do |path|
      expected = path.start_with?("/on/hijack") ? 200 : 500
      assert_equal expected, @server.get(path).status, path
    end
    assert_includes @server.log, "RuntimeError: of the application"
    assert_includes @server.log, "header fields take"
    assert_equal "hello", @server.get("/on/hello").body
  end

  def test_the_time_limit
    start("--request-timeout", "500ms", "--timeout-interrupts", "on")
    assert_equal 504, @server.get("/on/sleep?30").status
    wait_for("the exception in its fiber") { state["Highball::RequestTimeout"] == 1 }
    wait_for("the log") { @server.log.include?("a request has exceeded its time limit") }
    assert_equal LINES, @server.get("/on/lines").body, "it is for the beginning of the answer"
  end

  def test_clients_that_leave_or_read_nothing
    start
    streams = Array.new(5) { OpenStream.of(@server, "/on/flood") }
    streams.each { |stream| stream.connection.read_some }
    wait_for("the writers to wait") { (before = state["flood"]) && sleep(0.3) && state["flood"] == before }
    assert_equal "hello", @server.get("/on/hello").body
    streams.each(&:close)
    left = OpenStream.of(@server, "/on/many")
    left.first
    left.close
    wait_for("the bodies to be closed", within: 10) { state["closed"] == 6 }
    wait_for("nothing to be open") { open_fibers.zero? }
  end

  def test_there_is_a_limit
    start("--max-fibers", "10")
    sleeping = Array.new(10) { request("/on/sleep?1") }
    wait_for("them to run") { open_fibers == 10 }
    refused = @server.get("/on/sleep?1")
    assert_equal [503, "5"], [refused.status, refused["retry-after"]]
    assert_equal "hello", @server.get("/hello").body
    sleeping.each { |connection| assert_equal "slept", connection.read_response.body }
    assert_equal "slept", @server.get("/on/sleep?0.1").body
  end

  def test_a_fiber_that_computes_is_named
    start
    slow = request("/on/compute?2")
    assert_equal "hello", @server.get("/hello").body
    wait_for("the log") { @server.log.match?(/a request on a fiber computes.*at=.*config\.ru:\d+/) }
    assert_equal "computed", slow.read_response.body
  end

  # What an application writes to its sockets concerns the answers of these sockets alone.
  def test_garbage_ends_its_own_answers
    start
    @server.get("/hello")
    sleeping = Array.new(3) { request("/on/sleep?1") }
    wait_for("them to run") { open_fibers == 3 }
    assert_equal "garbage", @server.get("/garbage").body
    later = request("/on/sleep?0.5")
    assert_equal [502], sleeping.map { |connection| connection.read_response.status }.uniq
    assert_equal "slept", later.read_response.body
    assert_includes @server.log, "is not of Highball's protocol"
  end

  def test_a_killed_worker
    start
    sleeping = Array.new(10) { request("/on/sleep?30") }
    wait_for("them to run") { open_fibers == 10 }
    HighballServer.kill(@server.worker_pids.first)
    assert_equal [502], sleeping.map { |connection| connection.read_response.status }.uniq
    assert_equal "hello", @server.get("/on/hello").body
  end

  def test_restarts_and_the_end_wait_for_fibers
    start
    before = state["pid"]
    sleeping = Array.new(10) { request("/on/sleep?2") }
    wait_for("them to run") { open_fibers == 10 }
    HighballServer.kill(@server.pid, "USR1")
    wait_for("the new version") { state["pid"] != before }
    sleeping.each { |connection| assert_equal "slept", connection.read_response.body }
    last = request("/on/sleep?1")
    wait_for("it to run") { open_fibers == 1 }
    HighballServer.kill(@server.pid, "TERM")
    assert_equal "slept", last.read_response.body
    wait_for("the server to end") { !@server.running? }
  end

  def test_a_refork
    start("--refork-after", "1", workers: 2)
    30.times { assert_equal "hello", @server.get("/on/hello").body }
    wait_for("the refork") { @server.log.include?("reforked") }
    assert_equal LINES, @server.get("/on/lines").body
  end

  def test_threads_and_files_are_given_back
    start
    10.times { @server.get("/on/hello") && state }
    before = held
    sleeping = Array.new(100) { request("/on/sleep?0.5") }
    sleeping.each { |connection| connection.read_response && connection.close }
    wait_for("all to be as it was") { held.zip(before).all? { |now, then_| now <= then_ } }
  end

  # The application has its own scheduler.
  def test_another_scheduler
    own = "require \"highball/fiber_scheduler\"\nclass Own < Highball::FiberScheduler; end\n"
    @server = serve(folder_with("config.ru" => own + FiberApp::CONFIG), "--fibers", "/on/*", "--fiber-scheduler", "Own")
    assert_equal "Own", JSON.parse(@server.get("/on/where").body)["scheduler"]
    sleeping = Array.new(10) { request("/on/sleep?0.5") }
    sleeping.each { |connection| assert_equal "slept", connection.read_response.body }
  end

  private

  def start(*options, **settings)
    config = folder_with("config.ru" => FiberApp::CONFIG)
    @server = serve(config, "--fibers", "/on/*", "--sendfile", config, *options, workers: 1, threads: 1, **settings)
  end

  def request(path) = @server.connect.tap { |connection| connection.send_request("GET", path) }

  def state = JSON.parse(@server.get("/state").body).tap { |state| state.default = 0 }

  def open_fibers = @server.status["workers"].sum { |worker| worker["streams"] }

  def held
    [@server.open_files, ProcessFacts.open_file_count(@server.worker_pids.first), state["threads"]]
  end
end
