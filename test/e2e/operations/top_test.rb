# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/terminal"
require_relative "../../support/stuck_app"

# `highball top`: what a running server does, once as text or JSON, or in a terminal.
class TopTest < E2ETest
  include StuckApp

  # Requests that do not end are there for as long as a test takes.
  DRAIN = ["--drain-timeout", "1s", "--request-timeout", "none"].freeze
  LEAVES = "\e[?1049l" # the other screen
  SHOWS_CURSOR = "\e[?25h"

  def test_all_threads_are_stuck
    server = serve(stuck_app, *DRAIN, workers: 4, threads: 3)
    targets = stick_all(server)
    text = nil
    # Each at some time: a worker that answers late, on a busy machine, is explained by the kernel alone.
    left = targets
    wait_for("what all twelve do") do
      text = top(server, "--backtraces")
      left = left.reject { |target| explained?(text, target) }
      left.empty?
    end
    refute_includes text, "secret"
    refute_includes text, "\e"
    assert_equal targets.length, overview(server).dig("apps", 0, "requests").length
  end

  def test_a_worker_in_which_no_ruby_code_runs_is_seen_from_outside
    server = serve(stuck_app, *DRAIN, workers: 2, threads: 2)
    begin_requests(server, "/native/1")
    texts = Array.new(6) { top(server, "--backtraces") } # more than it is asked
    texts.each { |text| assert_match(%r{GET /native/1 +– .*(GVL|stopped).*\n +\(no backtrace\)}, text) }
    begin_requests(server, "/sleep/2")
    wait_for("the other one") { top(server).match?(%r{GET /sleep/2 +– sleeps}) }
  end

  # A worker that answers late delays the report, and not the time that its counts are of: rates would be wrong.
  def test_a_report_has_the_time_of_its_counts
    server = serve(stuck_app, *DRAIN, workers: 2, threads: 2)
    begin_requests(server, "/native/1")
    began = Deadline.now
    wait_for("an age at which threads are looked at") { Deadline.now - began > 0.3 }
    # The first waits for the worker for 0.6 seconds. The second knows that it is silent.
    times = Array.new(2) { overview(server)["at_ms"] }
    assert_operator times[1] - times[0], :>=, 550
  end

  def test_requests_that_wait
    server = serve(stuck_app, *DRAIN, workers: 1, threads: 1)
    clients = Array.new(300) { |number| server.connect.tap { |client| client.send_request("GET", "/sleep/#{number}") } }
    wait_for("the queue") { server.status["queue"] == 299 }
    app = overview(server).fetch("apps").fetch(0)
    assert_equal [200, 100, 299], [app["requests"].length, app["more_requests"], app["queue"]]
    stages = app["requests"].map { |request| request["stage"] }.tally
    assert_equal({ "running" => 1, "queued" => 199 }, stages)
    ages = app["requests"].map { |request| request["age_ms"] }
    assert_equal ages.sort.reverse, ages
    assert_includes top(server), "REQUEST (200, 100 younger ones left out)"
  ensure
    clients&.each(&:close)
  end

  # What clients and applications say is shown, and not obeyed.
  def test_hostile_texts
    server = serve(stuck_app, *DRAIN)
    begin_requests(server, "/hostile/%1b[2J%0d%0aforged/\u202e",
                   "/hostile/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijk")
    text = top(server, "--backtraces")
    assert_match(%r{GET /hostile/}, text)
    refute_match(/[\e\a\r\u202e]|^forged/, text)
    refute_includes text, "abcdefghijk"
    assert_operator text.lines.length, :<, 80
    assert_operator text.lines.map(&:length).max, :<, 1000
  end

  def test_the_terminal_is_given_back_at_a_signal
    server = serve(stuck_app)
    %w[TERM INT HUP QUIT].each do |signal|
      in_terminal(server) do |terminal|
        terminal.see(/REQUEST \(0\)/)
        HighballServer.kill(terminal.pid, signal)
        terminal.wait
        assert_given_back terminal
      end
    end
  end

  def test_the_server_ends
    server = serve(stuck_app)
    in_terminal(server) do |terminal|
      terminal.see(/REQUEST \(0\)/)
      server.stop
      refute_predicate terminal.wait, :success?
      assert_given_back terminal
      terminal.see(/does not answer any more/)
    end
  end

  def test_the_terminal_is_closed
    server = serve(stuck_app)
    in_terminal(server) do |terminal|
      terminal.see(/REQUEST \(0\)/)
      pid = terminal.pid
      terminal.hang_up
      wait_for("the end") { !File.exist?("/proc/#{pid}") || File.read("/proc/#{pid}/stat").include?(") Z ") }
    end
  end

  def test_a_terminal_that_can_only_print
    in_terminal(serve(stuck_app), term: "dumb") do |terminal|
      terminal.see(/REQUEST \(0\)/)
      assert_predicate terminal.wait, :success?
      refute_includes terminal.screen, "\e"
    end
  end

  # The shell gets the terminal, and the program gets it back.
  def test_it_is_suspended
    server = serve(stuck_app)
    in_terminal(server) do |terminal|
      terminal.see(/REQUEST \(0\)/)
      terminal.press("\x1a")
      wait_for("the stop") { File.read("/proc/#{terminal.pid}/stat").include?(") T ") }
      assert_given_back terminal
      HighballServer.kill(terminal.pid, "CONT")
      terminal.see(/REQUEST \(0\)/)
      terminal.press("q")
      assert_predicate terminal.wait, :success?
    end
  end

  def test_one_of_many_applications
    folders = Array.new(2) { stuck_app }
    config = File.join(folder_with, "highball.toml")
    File.write(config, folders.each_with_index.map { |path, number| <<~TOML }.join)
      [[app]]
      path = "#{path}"
      name = "app#{number}"
      hosts = ["app#{number}.localhost"]
    TOML
    server = serve_folder(File.dirname(config))
    wait_for("the applications") { answers_for?(server, "app0") && answers_for?(server, "app1") }
    assert_equal %w[app0 app1], (overview(server)["apps"].map { |app| app["name"] })
    output, = HighballServer.run("top", "--json", "app1")
    assert_equal %w[app1], (JSON.parse(output)["apps"].map { |app| app["name"] })
  end

  private

  def explained?(text, target)
    way = target[/\w+/]
    path = target.delete_suffix("token=secret")
    found = text[/^ +[\d.]+ (?:s|min) .*running +GET #{Regexp.escape(path)}… +– (.*\n(?: {12}.*\n)+)/, 1].to_s
    found.match?(DOING.fetch(way)) && found.match?(/config\.ru:\d+:in .*stuck_in_#{way}/)
  end

  def top(server, *options)
    output = highball("top", "--port", server.port.to_s, *options)
    output.force_encoding("UTF-8")
  end

  def overview(server) = JSON.parse(top(server, "--json"))

  def answers_for?(server, name)
    server.port && server.get("/", { "Host" => "#{name}.localhost" }).status == 200
  rescue SystemCallError
    false
  end

  def in_terminal(server, term: "xterm")
    command = [HighballServer::BINARY, "top", "--port", server.port.to_s]
    terminal = Terminal.new(folder_with, *command, env: { "TERM" => term })
    yield terminal
  ensure
    terminal&.finish
  end

  def assert_given_back(terminal)
    wait_for("the terminal") { terminal.screen.rindex(LEAVES).to_i > terminal.screen.rindex("\e[?1049h").to_i }
    assert_operator terminal.screen.rindex(SHOWS_CURSOR), :>, terminal.screen.rindex("\e[?25l")
  end

  # A server of the applications in this folder's highball.toml.
  def serve_folder(folder)
    options = ["-b", "127.0.0.1", "-p", "0", "-e", "production", "-w", "1"]
    command = [HighballServer::BINARY, "-c", File.join(folder, "highball.toml"), *options]
    HighballServer.new(folder, command: command).tap do |server|
      @servers << server
      wait_for("the server") { server.port }
    end
  end
end
