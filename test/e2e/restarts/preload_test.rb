# frozen_string_literal: true

require_relative "../../support/restart_test_case"

# Applications that cannot be loaded before a fork: each worker loads them itself.
class PreloadTest < RestartTestCase
  OFF = ["--preload", "off"].freeze

  def test_each_worker_loads_the_application
    app = version(1, folder_with("public/a.txt" => "a file"), <<~RUBY)
      LOADED_BY = Process.pid
      run ->(_env) { [200, {}, ["\#{LOADED_BY == Process.pid}"]] }
    RUBY
    server = serve(app, *OFF, workers: 2)
    assert_equal "true", answer(server)
    assert_equal "a file", server.get("/a.txt").body
    assert_equal "Rack", server.status["framework"]
    HighballServer.kill(server.worker_pids.first)
    wait_for("another") { workers(server) == %w[serving serving] }
    assert_equal "true", answer(server)
  end

  def test_a_failure_is_reported_like_that_of_a_mold
    output, ended = start("raise ArgumentError, 'no KEY was given'\n")
    refute_predicate ended, :success?
    assert_match(/loading the app.*no KEY was given/m, output)
    assert_match(/config\.ru:1/, output)
    output, = start("require 'no_such_gem_at_all'\n")
    assert_match(/gem install no_such_gem_at_all/, output)
  end

  def test_one_that_hangs
    output, ended = start("def stuck = sleep\nstuck\n", "--boot-timeout", "2s")
    refute_predicate ended, :success?
    assert_match(/takes longer than boot_timeout \(2 s\)/, output)
    assert_match(/config\.ru:1:in .*stuck/, output)
  end

  def test_one_that_ends_the_process
    output, ended = start("Process.kill(:KILL, Process.pid)\nsleep\n")
    refute_predicate ended, :success?
    assert_match(/loading the app.*killed by SIGKILL/m, output)
  end

  def test_restarts
    app = version(1)
    server = serve(app, *OFF, workers: 2)
    load = KeepAliveLoad.during(server) do |clients|
      version(2, app)
      assert_equal 2, restart(server)
      clients.more(3)
      version(3, app, "raise 'no luck'\n")
      output = restart_fails(server)
      assert_match(/loading the app failed: RuntimeError: no luck/, output)
      assert_match(/config\.ru:1/, output)
      version(4, app, "run ->(_env) { [500, {}, []] }\n")
      assert_match(/was answered with status 500/, restart_fails(server))
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal [2], load.versions_met.map(&:last).uniq
  end

  def test_there_is_no_refork
    server = serve(version(1), *OFF)
    output = highball_fails("refork", *server.which)
    assert_match(/preload = off/, output)
    output, ended = start("", "--refork-after", "100")
    assert_equal 2, ended.exitstatus
    assert_match(/option --refork-after: .*preload/, output)
  end

  private

  # Starts Highball on this config.ru, which fails: [output, Process::Status].
  def start(config, *options)
    app = version(1, folder_with, config)
    HighballServer.run("serve", "-e", "production", "-b", "127.0.0.1", "-p", "0", "-w", "2", *OFF, *options, app)
  end
end
