# frozen_string_literal: true

# marks: long

require_relative "../../support/restart_test_case"

# A new version that fails, for any reason, leaves everything as it was.
class FailedRestartsTest < RestartTestCase
  def test_a_version_that_does_not_boot
    fails_unnoticed("raise ArgumentError, 'no KEY was given'\n",
                    /loading the app failed: ArgumentError: no KEY was given/, /config\.ru:1/)
  end

  def test_a_version_that_ends_while_it_boots
    fails_unnoticed("Process.kill(:KILL, Process.pid)\nsleep\n", /killed by SIGKILL/)
  end

  def test_a_version_that_hangs_while_it_boots
    fails_unnoticed("sleep\n", /the boot takes longer than boot_timeout/, options: ["--boot-timeout", "6s"])
  end

  def test_a_version_that_answers_500
    fails_unnoticed("run ->(_env) { [500, {}, ['sorry']] }\n", %r{GET / was answered with status 500})
  end

  def test_a_version_that_raises_an_exception
    server = fails_unnoticed("run ->(_env) { raise 'no luck' }\n",
                             %r{GET / .*status 500, RuntimeError: no luck \(.*/config\.ru:\d+\)})
    assert_match(/the application raised an exception.*no luck/, server.log)
  end

  # A framework that makes a page of the exception leaves it in the env.
  def test_a_version_whose_framework_answers_for_the_exception
    server = fails_unnoticed(<<~RUBY, %r{GET / .*status 500, KeyError: key not found: :token})
      require "sinatra/base"
      class Broken < Sinatra::Base
        set :show_exceptions, false
        set :raise_errors, false
        set :host_authorization, { permitted_hosts: [] }
        get("/") { {}.fetch(:token) }
      end
      run Broken
    RUBY
    assert_match(/the application raised an exception.*KeyError/, server.log)
  end

  def test_no_client_passes_for_the_probe
    server = serve(folder_with("config.ru" => <<~RUBY))
      run(lambda do |env|
        env["rack.exception"] = RuntimeError.new("secret")
        [env["PATH_INFO"] == "/" ? 200 : 500, {}, [env.key?("highball.probe").inspect]]
      end)
    RUBY
    answer = server.get("/x", { "User-Agent" => "Highball", "highball.probe" => "1", "Highball-Probe" => "1" })
    assert_equal [500, "false"], [answer.status, answer.body]
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
                    /starting a worker failed: RuntimeError: no luck/)
  end

  # The first worker already serves clients.
  def test_a_version_whose_third_worker_cannot_start
    app = version(1)
    server = serve(app, workers: 3)
    before = server.worker_pids
    version(2, app, "Highball.after_fork { |number| raise 'no luck' if number > 5 }\n#{CONFIG}")
    load = KeepAliveLoad.during(server, allowed: [:went_back]) do |clients|
      output = restart_fails(server)
      assert_match(/starting a worker failed: RuntimeError: no luck/, output)
      wait_for("three old workers") { generations(server) == [1, 1, 1] && server.status["workers"].length == 3 }
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal [1], load.versions_met.map(&:last).uniq
    assert_operator (server.worker_pids & before).length, :>=, 1
  end

  def test_a_fixed_version_after_a_failure
    app = version(1)
    server = serve(app, workers: 2)
    version(2, app, "raise 'no luck'")
    assert_match(/no luck/, restart_fails(server))
    assert_match(/restart to generation 2 failed: .*no luck/, server.status["last_failure"])
    version(2, app)
    assert_equal 3, restart(server)
    assert_equal "2", answer(server)
  end

  private

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
    server
  end
end
