# frozen_string_literal: true

require "json"
require "net/http"
require_relative "../../support/e2e_test"
require_relative "../../support/terminal"

# A server at a terminal: a banner with one link, lines without times, and what Ctrl-C waits for.
class TerminalTest < E2ETest
  APP = <<~'RUBY'
    run(lambda do |env|
      sleep 30 if env["PATH_INFO"] == "/slow"
      [200, {}, ["hello"]]
    end)
  RUBY
  TIME = /\d\d:\d\d:\d\d\.\d+Z/
  COLOUR = /\e\[\d+m/

  def teardown
    @terminal&.finish
    super
  end

  def test_a_banner_with_one_link_that_opens_the_application
    start("-e", "development")
    banner = shown
    confined = OwnProcesses.spawner? ? "highball: seccomp and Landlock confine the server\n" : ""
    assert_match(/\A#{confined}Highball \d+\.\d+\.\d+ is starting highball-app\S+ \(development\)\n/, banner)
    assert_equal 1, banner.scan("http://").size, banner
    assert_match(%r{^  Open     http://127\.0\.0\.1:\d+/\?highball=\h{32}$}, banner)
    assert_match(/^  App      highball-app\S+: Rack, development$/, banner)
    assert_match(/^  Ruby     \d+\.\d+\.\d+, YJIT off/, banner)
    assert_match(/^  Workers  1 worker × \d+ threads$/, banner)
    assert_match(/^  Stop     Ctrl-C \(does not wait for requests\)$/, banner)
    refute_match TIME, banner
    refute_match COLOUR, banner, "this terminal is dumb"
    banner.each_line { |line| assert_operator line.chomp.length, :<=, 80, line }
    assert_equal "303", Net::HTTP.get_response(URI(banner[/http:\S+/])).code
  end

  def test_colours_unless_no_color_is_set
    start("-e", "development", env: { "TERM" => "xterm" })
    assert_match COLOUR, shown
    @terminal.ctrl_c
    assert_predicate @terminal.wait, :success?, @terminal.screen
    @terminal.finish
    start("-e", "development", env: { "TERM" => "xterm", "NO_COLOR" => "1" })
    refute_match COLOUR, shown
  end

  def test_ctrl_c_in_development_says_what_it_cuts_off
    start("-e", "development")
    begin_slow_request
    @terminal.ctrl_c
    @terminal.see(%r{stopped without waiting for GET /slow \(started \d+ s ago\)})
    assert_predicate @terminal.wait, :success?
    refute_includes @terminal.screen, "is killed"
  end

  def test_ctrl_c_says_what_it_waits_for_and_what_a_second_one_does
    start("-e", "production", "--drain-timeout", "20s")
    assert_match(/Ctrl-C \(waits up to 20 s for requests; press again to stop now\)/, shown)
    begin_slow_request
    @terminal.ctrl_c
    @terminal.see(%r{waiting up to \d+ s for GET /slow \(started \d+ s ago\)\n.*press Ctrl-C again to stop now})
    @terminal.ctrl_c
    @terminal.see(/second signal: stopping now/)
    refute_predicate @terminal.wait, :success?
  end

  def test_a_pipe_gets_the_log_with_times
    server = serve(folder_with("config.ru" => APP), "--drain-timeout", "20s")
    assert_match(/^\d{4}-\d\d-\d\dT#{TIME} INFO  serving on http:/, server.log)
    slow = Thread.new { server.get("/slow") }
    wait_for("the request") { in_flight(server.status) == 1 }
    server.signal("TERM")
    wait_for("what it waits for") { server.log.include?("waiting for requests to finish") }
    assert_match(%r{requests=1 oldest="GET /slow" age_ms=\d+ time_left_ms=\d+$}, server.log)
    server.signal("INT")
    server.wait
    slow.join
  end

  private

  def start(*options, env: {})
    folder = folder_with("config.ru" => APP)
    command = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", *options, folder]
    @terminal = Terminal.new(folder, *command, env: env)
    @port = @terminal.see(%r{http://127\.0\.0\.1:(\d+)})[1].to_i
    @terminal.see(/Stop.*Ctrl-C.*\n/)
  end

  def shown = @terminal.screen.dup

  def begin_slow_request
    @socket = TCPSocket.new("127.0.0.1", @port)
    @socket.write("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
    status = ["status", "--json", "--port", @port.to_s]
    wait_for("the request") do
      output, = HighballServer.run(*status)
      in_flight(JSON.parse(output)["apps"].first) == 1
    end
  end

  def in_flight(app) = app["workers"].sum { |worker| worker["in_flight"] }
end
