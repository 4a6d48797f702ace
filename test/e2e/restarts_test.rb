# frozen_string_literal: true

require_relative "../support/e2e_test"
require_relative "../support/keep_alive_load"

# Rolling restarts: a new version takes the place of the old one, or nothing changes; clients notice neither.
class RestartsTest < E2ETest
  CONFIG = <<~RUBY
    VERSION = File.read(File.join(__dir__, "version"))
    run lambda { |env|
      body = env["rack.input"] ? env["rack.input"].read : ""
      [200, { "content-type" => "text/plain" }, ["\#{VERSION} \#{body}"]]
    }
  RUBY

  def test_three_restarts_under_load
    app = version(1)
    server = serve(app, workers: 2)
    load = KeepAliveLoad.during(server) do |clients|
      (2..4).each do |number|
        version(number, app)
        clients.more(3)
        assert_equal number, restart(server)
        clients.more(3)
        assert_equal [number, number], generations(server)
      end
    end
    assert_empty load.failures
    # From old to new, never back, and everybody ends with the last one.
    load.versions_met.each { |met| assert_equal met.uniq.sort, met }
    assert_equal [4], load.versions_met.map(&:last).uniq
  end

  def test_by_signal_and_by_file
    app = version(1)
    server = serve(app)
    version(2, app)
    server.signal("USR1")
    wait_for("version 2") { answer(server) == "2" }
    version(3, app)
    FileUtils.mkdir_p(File.join(app, "tmp"))
    FileUtils.touch(File.join(app, "tmp/restart.txt"))
    wait_for("version 3") { answer(server) == "3" }
    asked_by = server.status["restarts"].map { |one| one["asked_by"] }
    assert_equal ["USR1", "tmp/restart.txt"], asked_by
  end

  def test_at_most_one_worker_more_than_usual
    app = version(1)
    server = serve(app, workers: 3)
    most = 0
    thread = Thread.new { restart(server) }
    until thread.join(0.01)
      workers = server.status["workers"]
      most = [most, workers.length].max
      assert_operator workers.count { |worker| worker["state"] == "serving" }, :>=, 3
    end
    assert_equal 2, thread.value
    assert_equal 4, most
  end

  # --- what fails leaves everything as it was

  def test_a_version_that_does_not_boot
    fails_unnoticed("raise ArgumentError, 'no KEY was given'\n",
                    /loading the app failed: ArgumentError: no KEY was given/, /config\.ru:1/)
  end

  def test_a_version_that_ends_while_it_boots
    fails_unnoticed("Process.kill(:KILL, Process.pid)\nsleep\n", /killed by SIGKILL/)
  end

  def test_a_version_that_hangs_while_it_boots
    fails_unnoticed("sleep\n", /loading the app failed: it was not done after/, options: ["--boot-timeout", "2s"])
  end

  def test_a_version_that_answers_500
    fails_unnoticed("run ->(_env) { raise 'no luck' }\n", %r{GET / was answered with status 500})
  end

  def test_a_version_that_does_not_answer
    fails_unnoticed("run ->(_env) { sleep }\n", %r{GET / was not answered within 500ms},
                    options: ["--probe-timeout", "500ms"])
  end

  def test_a_version_whose_canary_dies
    fails_unnoticed("run ->(_env) { Process.kill(:KILL, Process.pid); sleep }\n", /died while probing/)
  end

  def test_a_version_whose_workers_cannot_start
    fails_unnoticed("Highball.after_fork { raise 'no luck' }\n#{CONFIG}",
                    /starting worker \d+ .* failed: RuntimeError: no luck/)
  end

  # The first of them serves clients by then.
  def test_a_version_whose_third_worker_cannot_start
    app = version(1)
    server = serve(app, workers: 3)
    before = server.worker_pids
    version(2, app, "Highball.after_fork { |number| raise 'no luck' if number > 5 }\n#{CONFIG}")
    load = KeepAliveLoad.during(server) do |clients|
      output = restart_fails(server)
      assert_match(/starting worker 6 .* failed: RuntimeError: no luck/, output)
      wait_for("three old workers") { generations(server) == [1, 1, 1] && server.status["workers"].length == 3 }
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal [1], load.versions_met.map(&:last).uniq
    assert_operator (server.worker_pids & before).length, :>=, 1
  end

  def test_a_new_mold_that_is_killed
    kill_during_restart("booting") { |restart| restart.dig("mold", "pid") }
  end

  def test_a_canary_that_is_killed
    kill_during_restart("probing") do |_restart, server|
      server.status["workers"].find { |worker| worker["generation"] == 2 && worker["state"] == "probing" }&.fetch("pid")
    end
  end

  def test_after_a_failure_a_mended_version_comes
    app = version(1)
    server = serve(app, workers: 2)
    version(2, app, "raise 'no luck'")
    assert_match(/no luck/, restart_fails(server))
    assert_match(/restart to generation 2 failed: .*no luck/, server.status["last_failure"])
    version(2, app)
    assert_equal 3, restart(server)
    assert_equal "2", answer(server)
  end

  # --- beside other things

  def test_a_restart_that_is_asked_for_during_another_comes_after_it
    app = version(1)
    server = serve(app)
    slow(app, 2)
    first = Thread.new { restart(server) }
    wait_for("the first restart") { stage(server) == "booting" }
    version(3, app)
    later = Array.new(2) { Thread.new { restart(server) } }
    wait_for("the second restart") { stage(server) == "queued" }
    let_go(app)
    # Two that wait are one.
    assert_equal [2, 3, 3], [first, *later].map(&:value)
    assert_equal "3", answer(server)
  end

  def test_stop_during_a_restart
    %w[booting probing].each do |at|
      app = version(1)
      server = serve(app, workers: 2)
      at == "booting" ? slow(app, 2) : version(2, app, "run ->(_env) { sleep }\n")
      waiting = Thread.new { HighballServer.run("restart", *server.which) }
      wait_for(at) { stage(server) == at }
      assert_predicate server.stop, :success?, at
      assert_empty server.orphans
      refute_predicate waiting.value.last, :success?, at
    end
  end

  def test_a_release_that_a_link_leads_to
    releases = [version(1), version(2)]
    current = File.join(folder_with, "current")
    FileUtils.ln_s(releases.first, current)
    server = serve(current)
    FileUtils.ln_sf(releases.last, "#{current}.new")
    File.rename("#{current}.new", current)
    # A worker that dies is replaced by one of its own release.
    HighballServer.kill(server.mold_pid)
    HighballServer.kill(server.worker_pids.first)
    wait_for("version 1, booted anew", within: 20) { answer(server) == "1" }
    restart(server)
    assert_equal "2", answer(server)
    assert_equal File.realpath(releases.last), server.status["app"]
  end

  def test_an_app_object_cannot_be_restarted
    script = File.join(folder_with("serve.rb" => <<~RUBY), "serve.rb")
      require "rack"
      require "highball/handler"
      Highball::Handler.run(->(_env) { [200, {}, ["0 "]] }, Host: "127.0.0.1", Port: #{free_port})
    RUBY
    lib = { "RUBYLIB" => File.join(HighballServer::ROOT, "lib") }
    server = serve(File.dirname(script), command: ["ruby", script], env: lib)
    output, ended = HighballServer.run("restart", *server.which)
    refute_predicate ended, :success?
    assert_match(/given as an object/, output)
    assert_equal "0", answer(server)
  end

  private

  # A folder with this version of the application; or that version in this folder.
  def version(number, folder = folder_with, config = CONFIG)
    File.write(File.join(folder, "version"), number.to_s)
    File.write(File.join(folder, "config.ru"), config)
    folder
  end

  # A version that takes until `let_go` to boot.
  def slow(app, number)
    version(number, app, "sleep 0.01 until File.exist?(File.join(__dir__, 'go'))\n#{CONFIG}")
  end

  def let_go(app) = FileUtils.touch(File.join(app, "go"))

  # Restarts, and returns the generation that serves now.
  def restart(server)
    output, ended = HighballServer.run("restart", *server.which, within: 60)
    assert_predicate ended, :success?, output
    output[/generation (\d+) serves/, 1].to_i
  end

  # Restarts in vain, and returns what is said about it.
  def restart_fails(server)
    output, ended = HighballServer.run("restart", *server.which, within: 60)
    refute_predicate ended, :success?, output
    assert_match(/the version before serves on/, output)
    output
  end

  def fails_unnoticed(config, *clues, options: [])
    app = version(1)
    server = serve(app, *options, workers: 2)
    before = server.worker_pids
    version(2, app, config)
    load = KeepAliveLoad.during(server) do |clients|
      output = restart_fails(server)
      clues.each { |clue| assert_match clue, output }
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal [[1]], load.versions_met.uniq
    wait_for("the end of the new processes") { server.status["workers"].length == 2 }
    assert_equal before, server.worker_pids
    clues.each { |clue| assert_match clue, server.log }
  end

  # Kills the process that the block finds while the restart is at that stage.
  def kill_during_restart(at)
    app = version(1)
    server = serve(app, workers: 2)
    before = server.worker_pids
    at == "booting" ? slow(app, 2) : version(2, app, "run ->(_env) { sleep }\n")
    load = KeepAliveLoad.during(server) do |clients|
      waiting = Thread.new { restart_fails(server) }
      victim = wait_for(at) { stage(server) == at && yield(server.status["restarts"].last, server) }
      HighballServer.kill(victim)
      assert_match(/killed by SIGKILL/, waiting.value)
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal [[1]], load.versions_met.uniq
    assert_equal before, server.worker_pids
  end

  def generations(server)
    server.status["workers"].select { |worker| worker["state"] == "serving" }.map { |worker| worker["generation"] }
  end

  def stage(server)
    server.status["restarts"].last&.fetch("state")
  end

  def answer(server)
    server.get("/").body.split.first
  end

  def free_port
    TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end
end
