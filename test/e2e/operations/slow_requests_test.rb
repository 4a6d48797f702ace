# frozen_string_literal: true

require "json"
require_relative "../../support/e2e_test"
require_relative "../../support/admin"
require_relative "../../support/fiber_app"
require_relative "../../support/slow_app"

# Slow requests tell where their time went.
# marks: few (it measures times)
class SlowRequestsTest < E2ETest
  include Admin
  include SlowApp

  SLOW = ["--slow-request", "500ms"].freeze

  # What each kind of slow request does most of its time, in its method.
  KINDS = { "loop" => "computing", "sleep" => "waiting", "regex" => "computing", "lock" => "waiting", "gvl" => "gvl",
            "query" => "computing", "dns" => "waiting", "gc" => "gc", "json" => "computing",
            "file" => "waiting" }.freeze

  # Least share of that in all of its time. Samples wait for the GVL, and the last ones may come too late.
  LEAST = Hash.new(0.4).merge("gc" => 0.2, "gvl" => 0.3).freeze

  KINDS.each do |name, kind|
    define_method(:"test_the_guilty_line_of_#{name}") do
      skip "there is no gem sqlite3" if name == "query" && Gem::Specification.none? { |gem| gem.name == "sqlite3" }
      assert_guilty(serve(slow_app, *SLOW), name, kind)
    end
  end

  def test_native_code_in_a_worker_with_one_thread
    assert_guilty(serve(slow_app, *SLOW, threads: 1), "json", "computing")
  end

  def test_people_read_it_in_the_terminal_and_in_the_log
    server = serve(slow_app, *SLOW)
    assert_match(/: no slow requests$/, highball("status", "--slow", *server.which))
    ended_request(server, "/sleep")
    lines = /(?:9\d|100)% waiting work\.rb:\d+ (?:Work\.)?in_sleep → (?:Kernel#)?sleep"?$/
    text = highball("status", "--slow", *server.which)
    assert_match(%r{^GET /sleep  1\.\d s \(.*, worker 1, \d s ago\)\n    #{lines}}, text)
    logged = %r{ INFO  a slow request worker=1 request="GET /sleep" took=1\.\ds\s+spent(?:: |=")#{lines}}
    assert_match(logged, server.log)
    assert_match(%r{^slow .*GET /sleep 1\.\d s, worker 1\n +#{lines}}, highball("status", "--details", *server.which))
  end

  def test_one_line_of_json_in_the_log
    server = serve(slow_app, *SLOW, "--log-format", "json", ready: nil)
    wait_for("an answer") { server.port && server.get("/").status == 200 }
    ended_request(server, "/sleep")
    line = server.log.lines.map { |text| JSON.parse(text) }.find { |event| event["message"] == "a slow request" }
    assert_equal ["GET /sleep", 1], line.values_at("request", "worker")
    assert_match(/% waiting work\.rb:\d+ .*in_sleep/, line["spent"])
  end

  def test_fast_requests_are_not_kept_and_the_option_turns_it_off
    server = serve(slow_app, *SLOW)
    assert_equal 200, server.get("/wait?0.3").status
    ended_request(server, "/sleep")
    assert_nil slow_request(server, "/wait?…")
    %w[off 0].each do |off|
      server = serve(slow_app, "--slow-request", off)
      assert_equal 200, server.get("/sleep").status
      assert_empty slow_requests(server)
      refute_match(/slow request/, server.log)
    end
    assert_match(/slow_request|slow-request/, highball_fails("serve", "--slow-request", "10ms", slow_app))
  end

  def test_the_last_fifty_are_kept
    server = serve(slow_app, *SLOW, threads: 16)
    concurrently(16) { 4.times { server.get("/wait?0.6") } }
    wait_for("fifty reports") { slow_requests(server).count { |request| request["state"] == "ended" } == 50 }
    assert_equal 3, server.status.fetch("slow_requests").length
  end

  def test_what_is_known_of_a_request_stays_when_its_worker_dies
    server = serve(slow_app, *SLOW)
    client = server.connect.tap { |connection| connection.send_request("POST", "/wait?60") }
    wait_for("the report") { slow_requests(server).any? }
    running = slow_requests(server).first
    assert_equal ["POST /wait", "running"], running.values_at("request", "state")
    HighballServer.kill(server.worker_pids.first)
    wait_for("its end") { slow_requests(server).first["state"] == "died" }
    part = slow_requests(server).first["parts"].first
    assert_equal %w[config.ru waiting], part.values_at("file", "what")
    assert_match(/a slow request, its worker ended worker=1 request="POST /, server.log)
    client.close
  end

  def test_a_request_that_times_out
    server = serve(slow_app, *SLOW, "--request-timeout", "1500ms")
    assert_equal 504, server.get("/wait?60", within: 30).status
    wait_for("the end of its worker") { server.log.include?("a slow request, timed out") }
    assert_equal ["GET /wait", "timed_out"], slow_requests(server).first.values_at("request", "state")
  end

  def test_an_interrupted_request_is_reported
    server = serve(slow_app, *SLOW, "--request-timeout", "1500ms", "--timeout-interrupts", "on")
    assert_equal 504, server.get("/wait?60", within: 30).status
    wait_for("its end") { server.log.include?("a slow request, timed out") }
    assert_equal 1, slow_requests(server).first["worker"]
  end

  def test_requests_on_fibers
    server = serve(folder_with("config.ru" => FiberApp::CONFIG), *SLOW, "--fibers", "/on/*")
    targets = %w[/on/sleep?1.5 /on/compute?1.2]
    assert_equal [200, 200], concurrently(2) { |index| server.get(targets[index], within: 30).status }
    wait_for("both reports") { slow_requests(server).count { |request| request["state"] == "ended" } == 2 }
    sleeping, computing = %w[/on/sleep /on/compute].map { |path| slow_request(server, path) }
    assert_operator part_of(sleeping, "waiting"), :>, 0.6, sleeping.inspect
    assert_operator part_of(computing, "computing"), :>, 0.5, computing.inspect
  end

  # An event stream is long by design.
  def test_streams_are_not_slow_requests
    app = <<~RUBY
      body = Enumerator.new { |out| 8.times { out << "data: x\\n\\n"; sleep 0.25 } }
      run ->(_) { [200, { "content-type" => "text/event-stream" }, body] }
    RUBY
    server = serve(folder_with("config.ru" => app, "work.rb" => ""), *SLOW, ready: nil)
    wait_for("an answer") { server.port && server.get("/", within: 30).status == 200 }
    assert_empty slow_requests(server)
  end

  def test_secrets_are_masked
    secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijk"
    server = serve(slow_app, *SLOW)
    server.get("/wait/#{secret}?1.0&password=hunter2")
    wait_for("the report") { slow_requests(server).any? { |request| request["state"] == "ended" } }
    texts = [highball("status", "--slow", *server.which), server.log, JSON.generate(server.status)]
    assert_match(%r{GET /wait/}, texts.first)
    texts.each { |text| refute_match(/abcdefghijk|hunter2/, text) }
  end

  # The worker's own messages, with anything in them.
  def test_a_worker_that_floods_and_lies
    app = <<~'RUBY'
      run lambda { |env|
        control = ObjectSpace.each_object(Highball::ControlSocket).to_a.last
        part = { ms: 2**60, what: "waiting", file: "\e[2J<b>" * 50, line: 1, label: "\e]0;x\a\n" * 50, below: "x" * 400 }
        lie = { request: "GET /\e[2J#{'<script>' * 100}", ms: 2**60, ended: true, samples: 1, parts: [part] * 9, other_ms: 1 }
        case env["PATH_INFO"]
        when "/flood" then 20_000.times { |number| control.say(:slow, ticket: number, **lie, parts: [part]) }
        when "/lie" then control.say(:slow, ticket: 7, **lie)
        when "/garbage" then control.say(:slow, ticket: -1, parts: "none")
        end
        [200, {}, ["ok"]]
      }
    RUBY
    server = serve(folder_with("config.ru" => app), *admin)
    assert_equal 200, server.get("/lie").status
    wait_for("the report") { slow_requests(server).any? }
    page = ask_admin("/").body
    assert_includes page, "GET /"
    refute_match(/<script>|\e/, page)
    assert_equal 200, server.get("/flood", within: 60).status
    wait_for("the flood to be counted") { server.log.include?("the application's processes send too many messages") }
    text = highball("status", "--slow", *server.which)
    refute_match(/[\e\a]/, text + server.log)
    assert_operator text.bytesize, :<, 200_000
    assert_operator slow_requests(server).length, :<=, 50
    server.get("/garbage")
    wait_for("the worker to be replaced") { server.log.include?("killing a process that broke the protocol") }
    wait_for("another worker") { server.settled? }
  end

  # What the application has changed in Ruby harms its requests no more than before.
  def test_an_application_that_breaks_what_samples_use
    app = "def GC.total_time = raise('no')\nrun ->(_) { sleep 1; [200, {}, ['ok']] }\n"
    server = serve(folder_with("config.ru" => app), *SLOW, ready: nil)
    wait_for("an answer") { server.port && server.get("/").status == 200 }
    assert_match(/slow requests are not sampled any more/, server.log)
    assert_equal 200, server.get("/").status
  end

  def test_the_dashboard_shows_them
    server = serve(slow_app, *SLOW, *admin)
    refute_includes ask_admin("/").body, "Slow request</th>"
    ended_request(server, "/sleep")
    page = ask_admin("/").body
    assert_match(%r{<code>GET /sleep</code>.*% waiting work\.rb:\d+ (?:Work\.)?in_sleep}, page)
  end

  private

  def assert_guilty(server, name, kind)
    request = ended_request(server, "/#{name}")
    part = request["parts"].first
    assert_equal ["work.rb", true], [part["file"], part["method"].end_with?("in_#{name}")], request.inspect
    assert_includes lines_of("in_#{name}"), part["line"], request.inspect
    share = part_of(request, kind)
    assert_operator share, :>, LEAST[name], request.inspect
    assert_in_delta request["seconds"], time_in(request), 0.3, request.inspect
  end

  # The share of this kind of time in all parts.
  def part_of(request, kind)
    request["parts"].sum { |part| part["what"] == kind ? part["seconds"] : 0 } / time_in(request)
  end

  def time_in(request) = request["parts"].sum { |part| part["seconds"] } + request["other_seconds"]

  # The lines of a method of the application.
  def lines_of(method)
    lines = SlowApp::SOURCE.lines
    first = lines.index { |line| line.match?(/def #{method}\b/) }
    last = lines[first].include?(" = ") ? first : lines[first..].index { |line| line == "  end\n" } + first
    (first + 1)..(last + 1)
  end
end
