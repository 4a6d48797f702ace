# frozen_string_literal: true

# marks: long

require_relative "../../support/refork_test_case"

# Reforks that fail leave the old mold in place. Other events during a refork.
class FailedReforksTest < ReforkTestCase
  def test_a_worker_that_dies_while_it_is_promoted
    fails("Highball.before_refork { Process.kill(:KILL, Process.pid); sleep }\n", /died: killed by SIGKILL/)
  end

  def test_a_hook_that_raises
    fails("Highball.before_refork { raise 'no luck' }\n", /RuntimeError: no luck/)
  end

  def test_a_worker_that_is_not_promoted_in_time
    fails("Highball.before_refork { sleep }\n", /killed by SIGKILL/, options: ["--boot-timeout", "3s"])
  end

  def test_a_promoted_mold_whose_workers_cannot_start
    fails("Highball.after_fork { |number| raise 'no luck' if number == 4 }\n", /RuntimeError: no luck/)
  end

  def test_a_promoted_mold_that_cannot_fork
    fails(<<~RUBY, /did not come to serve: .*no luck/)
      Highball.before_refork { Process.singleton_class.prepend(Module.new { def _fork = raise("no luck") }) }
    RUBY
  end

  def test_both_molds_are_killed_while_workers_are_replaced
    during_refork("rolling", workers: 2, waiting_from: 5) do |server, app|
      HighballServer.kill(server.mold_pid)
      wait_for("its end") { server.mold_pid.nil? }
      HighballServer.kill(server.status.dig("refork", "mold", "pid"))
      wait_for_refork(server, "failed")
      let_go(app)
      wait_for("another booted mold", within: 20) { server.status.dig("mold", "state") == "booted" }
    end
  end

  # --- during other operations

  def test_a_restart_that_is_asked_for_during_a_refork_comes_after_it
    during_refork("rolling", workers: 2, waiting_from: 5, generation: 2) do |server, app|
      restarting = Thread.new { restart(server) }
      wait_for("the restart") { stage(server) == "queued" }
      let_go(app)
      assert_equal 2, restarting.value
      assert_equal "done", refork_stage(server)
    end
  end

  def test_a_refork_during_a_restart_is_refused
    app = version(1)
    server = serve(app, "--refork-after", "5", workers: 1)
    wait_for("the first refork") { answer(server) && refork_stage(server) == "done" }
    slow(app, 2)
    restarting = Thread.new { restart(server) }
    wait_for("the restart") { stage(server) == "booting" }
    count = server.status.dig("refork", "number")
    20.times { answer(server) }
    assert_match(/a restart is under way/, refork_fails(server))
    assert_equal count, server.status.dig("refork", "number")
    let_go(app)
    assert_equal 2, restarting.value
    # The schedule starts over with the new version.
    wait_for("the next refork", within: 20) { answer(server) && server.status.dig("refork", "number") > count }
    wait_for_refork(server, "done")
    assert_equal [2], generations(server)
  end

  def test_more_and_fewer_workers
    during_refork("rolling", workers: 2, waiting_from: 5, wanted: 3) do |server, app|
      [["TTIN", 3], ["TTIN", 4], ["TTOU", 3]].each do |signal, wanted|
        server.signal(signal)
        wait_for("#{wanted} workers wanted") { server.status["workers_wanted"] == wanted }
      end
      let_go(app)
      wait_for_refork(server, "done")
    end
  end

  def test_stop_at_every_stage
    {
      "relieving" => ReforkTestCase.waiting_from(3),
      "promoting" => "Highball.before_refork { sleep }\n#{CONFIG}",
      "rolling" => ReforkTestCase.waiting_from(4)
    }.each do |at, config|
      server = serve(version(1, folder_with, config), workers: 2)
      waiting = Thread.new { HighballServer.run("refork", *server.which) }
      wait_for_refork(server, at)
      assert_predicate server.stop, :success?, at
      assert_empty server.orphans
      refute_predicate waiting.value.last, :success?, at
    end
  end

  private

  # Runs the block, under load, while a refork is at that stage: workers from that number on wait until `let_go`.
  def during_refork(at, workers:, waiting_from:, wanted: workers, generation: 1)
    app = version(1, folder_with, ReforkTestCase.waiting_from(waiting_from))
    server = serve(app, workers: workers)
    load = KeepAliveLoad.during(server) do |clients|
      server.signal("URG")
      wait_for_refork(server, at)
      yield server, app
      wait_for("all workers", within: 20) { workers(server) == Array.new(wanted, "serving") }
      assert_equal [generation], generations(server).uniq
      clients.more(3)
    end
    # A killed worker may lose the requests that it had started.
    assert_empty load.failures.reject(&:lost_with_a_worker?)
  end

  # A refork that fails, under load, and without a failed request.
  def fails(config, why, options: [])
    app = version(1, folder_with, config + CONFIG)
    server = serve(app, *options, workers: 2)
    mold = server.mold_pid
    load = KeepAliveLoad.during(server) do |clients|
      assert_match why, refork_fails(server)
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal mold, server.mold_pid
    assert_whole(server, 2)
    assert_match why, server.status["last_failure"]
  end
end
