# frozen_string_literal: true

require_relative "../../support/many_apps_test_case"
require_relative "../../support/stuck_app"
require_relative "../../support/tmux"

# `highball top` on screens of several sizes, as tmux draws them.
class TopScreenTest < ManyAppsTestCase
  include StuckApp

  # Requests that do not end are there for as long as a test takes.
  DRAIN = ["--drain-timeout", "1s", "--request-timeout", "none"].freeze
  # Columns and rows.
  SIZES = [[80, 24], [100, 30], [120, 40], [200, 50]].freeze
  # What is there at each size.
  ALWAYS = ["REQ/S", "5XX/S", "P50", "P95", "QUEUE", "BUSY", "WORKERS", "PID", "MEMORY", "CPU", "SERVED",
            "UP", "q quit", "? help"].freeze

  def test_at_each_size
    server = serve(stuck_app, *DRAIN, workers: 2, threads: 3)
    begin_requests(server, "/sleep/#{'long/' * 30}end?token=secret")
    SIZES.each do |columns, rows|
      on_screen(server, columns: columns, rows: rows) do |tmux|
        tmux.see(%r{running +GET /sleep/long.*end\?…  – sleeps$})
        lines = tmux.screen.lines
        assert_equal [], ALWAYS.reject { |text| lines.any? { |line| line.include?(text) } }, tmux.screen
        assert_match(/q quit.*k replace worker/, lines.last)
        assert_question_is_whole(tmux, columns)
        tmux.see(%r{REQ/S SO FAR\n.* [▁-█]{3,}$}) if columns >= 120
      end
    end
  end

  def test_help
    on_screen(serve(stuck_app)) do |tmux|
      tmux.see(/REQUEST \(0\)/)
      tmux.press("?")
      tmux.see(/Every action asks for confirmation: y\..*Requests are yellow after 2 s/m)
      tmux.press("?")
      tmux.see(/REQUEST \(0\)/)
    end
  end

  # Lines of a backtrace are wrapped, and stay whole.
  def test_the_backtrace_of_a_request
    name = "long_#{'name_' * 40}end"
    source = "def #{name} = sleep\nrun ->(env) { env['PATH_INFO'] == '/long' ? #{name} : [200, {}, []] }\n"
    server = serve(folder_with("config.ru" => source), *DRAIN)
    begin_requests(server, "/long?token=secret")
    SIZES.each do |columns, rows|
      on_screen(server, columns: columns, rows: rows) do |tmux|
        tmux.see(%r{GET /long\?…  – sleeps})
        tmux.press("Enter")
        tmux.see(/client +127\.0\.0\.1/)
        wait_for("the name at #{columns} columns") { tmux.screen.delete("\n").match?(/config\.ru:1:in ?.#{name}/) }
        tmux.press("Escape")
        tmux.see(/REQUEST \(1\)/)
        tmux.press("q")
        tmux.wait
      end
    end
  end

  def test_a_failed_application_comes_first
    server, = serve_two("bad/config.ru" => "run Sohp.new\n")
    wait_for("the failure") { server.full_status["apps"].map { |app| app["phase"] }.sort == %w[failed serving] }
    on_screen(server) do |tmux|
      tmux.see(/\AHighball \S+  1 of 2 applications failing/)
      tmux.see(/^▸ bad +failed .*\n +\w+: (.*\n)?.*Sohp.*\n(.*\n){1,2} +good +serving/)
      assert_match(/\e\[(1;)?31m(\e\[49m)?[^\e]*bad +failed/, tmux.screen(colours: true))
      tmux.press("d")
      tmux.see(/^bad \(failed\)\n.*Sohp.*> +1  run Sohp\.new/m)
    end
    on_screen(server, environment: { "NO_COLOR" => "1" }) do |tmux|
      tmux.see(/1 of 2 applications failing/)
      refute_match(/\e\[[\d;]*3[0-7]m/, tmux.screen(colours: true))
    end
  end

  def test_the_screen_changes_its_size
    on_screen(serve(stuck_app)) do |tmux|
      tmux.see(/REQUEST \(0\)/)
      tmux.resize(30, 8)
      tmux.see(/This terminal has 30×8/)
      tmux.resize(120, 30)
      tmux.see(%r{P95 +MEMORY.*REQ/S SO FAR})
    end
  end

  def test_the_worker_of_a_request_is_replaced
    server = serve(stuck_app, *DRAIN, workers: 2, threads: 3)
    begin_requests(server, "/sleep/1")
    worker = server.status["workers"].find { |one| one["in_flight"] == 1 }.fetch("pid")
    on_screen(server) do |tmux|
      tmux.see(%r{GET /sleep/1})
      tmux.press("k")
      tmux.see(%r{Replace the worker of GET /sleep/1})
      tmux.press("n")
      tmux.see(/q quit/)
      assert_includes server.worker_pids, worker
      press_and_confirm(tmux, "k", /is replaced: another one starts first/)
      wait_for("another worker") { !server.worker_pids.include?(worker) }
    end
    assert_match(/an operator has asked for it/, server.log)
  end

  def test_orders
    server = serve(stuck_app, workers: 2)
    on_screen(server) do |tmux|
      tmux.see(/REQUEST \(0\)/)
      press_and_confirm(tmux, "+", /3 workers from now on/)
      wait_for("three workers") { server.status["workers"].count { |one| one["state"] == "serving" } == 3 }
      press_and_confirm(tmux, "-", /2 workers from now on/)
      press_and_confirm(tmux, "r", /the restart to generation 2 has begun/)
      wait_for("the restart") { server.status["generation"] == 2 }
    end
  end

  private

  def on_screen(server, **settings, &block)
    Tmux.open(HighballServer::BINARY, "top", "--port", server.port.to_s, **settings, &block)
  end

  def press_and_confirm(tmux, key, outcome)
    tmux.press(key)
    tmux.see(%r{\(y/n\)})
    tmux.press("y")
    tmux.see(outcome)
  end

  def assert_question_is_whole(tmux, columns)
    tmux.press("k")
    tmux.see(%r{\(y/n\) Replace the worker})
    question = tmux.screen[%r{\(y/n\).*}m].lines.map { |line| line.chomp.ljust(columns) }.join.squeeze(" ")
    assert_match(%r{GET /sleep/(long/)+ ?.*end\?…\? \(worker \d of .+; its other requests finish\)}, question)
    tmux.press("n")
  end
end
