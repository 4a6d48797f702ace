# frozen_string_literal: true

require_relative "../../support/album_app"
require_relative "../../support/e2e_test"
require_relative "../../support/terminal"

# `bin/dev`: foreman runs Procfile.dev, in which Highball is one of several programs.
class ProcfileTest < E2ETest
  include AlbumApp

  # What foreman prints before a line, and a line of each program of Procfile.dev. Foreman has no name for what it reads
  # after the program has ended.
  PREFIX = /(?:\^C)?\d\d:\d\d:\d\d (?<name>\w+(?:\.1)?)? +\| /
  WATCHER = %r{\A(?:started with pid \d+|Rebuilt app/assets/stylesheets/application\.css, \d+\.|exited with code 0)\z}
  STARTED = %r{\AStarted GET "/photos\?\d+" for 127\.0\.0\.1 at [-\d]+ [:\d]+ \+0000\z}

  def setup
    super
    skip "foreman is not installed" unless system("foreman", "version", %i[out err] => File::NULL)
    @app = album_on_highball
    @port = free_port
  end

  def teardown
    @terminals&.each(&:finish)
    super
  end

  def test_lines_are_whole_and_ctrl_c_ends_all
    dev = start_dev
    concurrently(4) { |client| 10.times { |number| get("/photos?#{client}#{number}") } }
    # What foreman has not read by then is lost.
    wait_for("all lines") { dev.screen.scan("Started GET").length >= 40 }
    dev.ctrl_c
    assert_predicate dev.wait, :success?, dev.screen
    lines = lines_of(dev)
    assert_equal 40, lines["web.1"].grep(STARTED).length, dev.screen
    assert_empty lines["web.1"].grep(/Started/).grep_v(STARTED)
    assert_empty lines["css.1"].grep_v(WATCHER)
    assert_includes lines["web.1"], "exited with code 0"
    refute_path_exists File.join(@app, "tmp/pids/server.pid")
    wait_for("the end of all processes") { ProcessFacts.with_environment(HighballServer::MARK, @mark).empty? }
  end

  # Rails' Procfile.dev sets RUBY_DEBUG_OPEN, because the terminal is foreman's. A debugger that attaches stops the
  # main thread as well, and then takes commands for that thread: this test repeats its commands.
  def test_a_debugger_in_another_terminal
    long
    skip "debug #{debug_version} opens no socket there" if debug_version < Gem::Version.new("1.9")
    action = "    answer = 41_000\n    debugger\n    return render(plain: answer)\n"
    insert(@app, "app/controllers/photos_controller.rb", action, "def index\n")
    dev = start_dev
    answer = Thread.new { get("/photos") }
    dev.see(/Debugger can attach via UNIX domain socket/)
    attached = terminal("bundle", "exec", "rdbg", "--attach")
    attached.see(/photos_controller\.rb.*rdbg:remote/m)
    repeat(attached, "answer + 1") { attached.screen.include?("41001") }
    repeat(attached, "continue") { answer.join(0.1) }
    assert_equal "41000", answer.value
    attached.finish
    dev.ctrl_c
    assert_predicate dev.wait, :success?, dev.screen
  end

  private

  def terminal(*command)
    @mark ||= SecureRandom.hex(8)
    env = gem_environment.merge("PORT" => @port.to_s, HighballServer::MARK => @mark)
    Terminal.new(@app, *command, env: env).tap { |opened| (@terminals ||= []) << opened }
  end

  def start_dev = terminal("bin/dev").tap { |dev| dev.see(/in your browser/) }

  def repeat(terminal, command, &condition)
    Deadline.wait("an effect of #{command}", within: Terminal::WITHIN, every: 1) do
      terminal.type(command)
      condition.call
    end
  rescue Deadline::Missed => e
    flunk "#{e.message}:\n#{terminal.screen}"
  end

  def debug_version = Gem::Specification.stubs_for("debug").map(&:version).max

  # What each program has printed.
  def lines_of(terminal)
    lines = terminal.screen.gsub(/\e\[\d+m/, "").lines(chomp: true).reject(&:empty?)
    assert_empty(lines.grep_v(/\A#{PREFIX}/))
    by_name = lines.group_by { |line| line[PREFIX, :name] || "unknown" }
    by_name.transform_values { |all| all.map { |line| line.sub(PREFIX, "") } }
  end

  def get(target)
    HttpConnection.tcp(@port).use do |connection|
      connection.get(target, { "Host" => "127.0.0.1" }, within: Terminal::WITHIN).body
    end
  end
end
