# frozen_string_literal: true

# marks: root

require "pty"
require_relative "../../support/upgrade_test_case"

# What a process inherits over exec from its starter: none of it may disable the server. `env` of coreutils
# blocks and ignores signals.
class InheritedStateTest < UpgradeTestCase
  OPTIONS = %w[serve -b 127.0.0.1 -p 0 -e production -w 1].freeze
  # Signals that would end the server are sent at the end.
  ALL = "HUP,INT,QUIT,USR1,USR2,URG,ALRM,TERM,CHLD,CONT,TTIN,TTOU,PWR,WINCH"

  def test_blocked_signals
    server = start("env", "--block-signal")
    follows_signals(server)
    assert_takes_signals(server, "SigBlk")
    ends_by(server, "TERM")
  end

  def test_ignored_signals
    server = start("env", "--ignore-signal=#{ALL}")
    follows_signals(server)
    assert_takes_signals(server, "SigIgn")
    ends_by(server, "QUIT")
  end

  def test_blocked_and_ignored_at_once_and_an_upgrade
    server = start("env", "--block-signal", "--ignore-signal=#{ALL}")
    version(2, server.app)
    server.signal("USR2")
    wait_for("the new process", within: 60) { answer(server) == "2" && server.status["pid"] != server.pid }
    wait_for("end of the old workers", within: 60) { server.settled? }
    assert_takes_signals(server, "SigBlk")
    assert_takes_signals(server, "SigIgn")
    ends_by(server, "INT")
  end

  # An application may start programs, which a TERM is to end.
  def test_programs_that_the_application_starts
    app = folder_with("config.ru" => <<~'RUBY')
      run ->(_) { [200, {}, [`grep -E 'SigBlk|SigIgn' /proc/self/status`.scan(/\h{16}/).join(" ")]] }
    RUBY
    through = ["env", "--block-signal", "--ignore-signal=#{ALL}"]
    server = serve(app, command: [*through, HighballServer::BINARY, *OPTIONS, app])
    blocked, ignored = server.get("/").body.split.map(&:hex)
    assert_equal 0, blocked
    assert_equal 0, ignored & ~bits("PIPE")
  end

  # With a terminal, HUP ends a server that does not inherit it as ignored, as by nohup.
  def test_hangup
    PTY.open do |_, terminal|
      [[["env", "--ignore-signal=HUP"], true], [["env"], false]].each do |through, outlives|
        server = start(*through, fds: { in: terminal })
        server.signal("HUP")
        next assert_equal(0, server.wait.exitstatus) unless outlives

        version(2, server.app)
        server.signal("USR1")
        wait_for("version 2", within: 60) { answer(server) == "2" }
        server.stop
      end
    end
  end

  def test_closed_standard_streams
    ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"].each do |closed|
      socket = File.join(folder_with, "socket")
      app = version(1)
      words = [HighballServer::BINARY, "serve", "-b", "unix:#{socket}", "-e", "production", "-w", "1", app]
      server = serve(app, bind: socket, command: ["sh", "-c", "exec \"$@\" #{closed}", "sh", *words])
      assert_equal "1", answer(server), closed
      version(2, app)
      output, ended = HighballServer.run("restart", app, within: 60)
      assert_predicate ended, :success?, "#{closed} #{output}"
      assert_equal "2", answer(server), closed
      HighballServer.kill(server.worker_pids.first)
      wait_for("another worker", within: 60) { workers(server) == ["serving"] }
      server.stop
    end
  end

  def test_a_folder_that_is_gone
    app = version(1)
    gone = folder_with
    script = "cd '#{gone}' && rmdir '#{gone}' && exec \"$@\""
    server = serve(app, command: ["sh", "-c", script, "sh", HighballServer::BINARY, *OPTIONS, app])
    version(2, app)
    server.signal("HUP")
    upgrade(server)
    assert_equal "2", answer(server)
    Dir.mkdir(gone)
    words = ["sh", "-c", script, "sh", HighballServer::BINARY, *OPTIONS]
    output, ended = Open3.capture2e(HighballServer::ENVIRONMENT, *words)
    assert_equal 2, ended.exitstatus, output
    assert_match(/the current folder is gone/, output)
  end

  def test_variables_that_are_no_text
    app = folder_with("config.ru" => "run ->(_) { [200, {}, [ENV.fetch('ODD').b]] }")
    server = serve(app, env: { "ODD" => "caf\xE9\xFF".b })
    assert_equal "caf\xE9\xFF".b, server.get("/").body.b
    output = highball_fails(*OPTIONS, app, env: { "HIGHBALL_CONFIG" => "#{app}/caf\xE9.toml".b })
    assert_match(/HIGHBALL_CONFIG: `.*caf\\xe9\.toml` is not UTF-8/, output)
  end

  # Descriptors meant for another process, and one left open.
  def test_descriptors
    app = version(1)
    File.open(File.join(app, "version")) do |file|
      server = serve(app, fds: { 3 => file, 9 => file }, env: { "LISTEN_FDS" => "1", "LISTEN_PID" => "1" })
      assert_equal "1", answer(server)
      upgrade(server)
      assert_equal "1", answer(server)
    end
  end

  def test_a_session_without_a_terminal
    app = version(1)
    server = serve(app, command: ["setsid", "--wait", HighballServer::BINARY, *OPTIONS, app])
    assert_equal "1", answer(server)
    highball("stop", *server.which, within: 60)
    assert_equal 0, server.wait.exitstatus
  end

  private

  def start(*through, **settings)
    app = version(1)
    serve(app, command: [*through, HighballServer::BINARY, *OPTIONS, app], **settings)
  end

  def follows_signals(server)
    version(2, server.app)
    server.signal("USR1")
    wait_for("version 2", within: 60) { answer(server) == "2" }
    server.signal("TTIN")
    wait_for("one worker more", within: 60) { workers(server) == %w[serving serving] }
    server.signal("TTOU")
    wait_for("one worker less", within: 60) { workers(server) == %w[serving] }
    server.signal("HUP")
    HighballServer.kill(server.worker_pids.first)
    wait_for("another worker", within: 60) { server.settled? }
  end

  # All processes of Highball take every signal, but what their runtime ignores.
  def assert_takes_signals(server, field)
    server.pids.each do |pid|
      mask = File.read("/proc/#{pid}/status")[/^#{field}:\s*(\h+)/, 1].hex
      assert_equal 0, mask & bits(*ALL.split(",")), "#{field} of #{ProcessFacts.command_line(pid)}"
    end
  end

  def bits(*names) = names.sum { |name| 1 << (Signal.list.fetch(name) - 1) }

  def ends_by(server, signal)
    assert_equal 0, server.stop(signal).exitstatus
  end
end
