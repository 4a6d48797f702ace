# frozen_string_literal: true

require_relative "../../support/restart_test_case"

# Rolling restarts of a large pool replace a tenth of it at a time.
class LargePoolTest < RestartTestCase
  WORKERS = 20
  SURGE = WORKERS / 10

  def test_two_of_twenty_workers_are_replaced_at_a_time
    long
    app = version(1)
    server = serve(app, workers: WORKERS, threads: 1)
    wait_until_memory_is_known(server)
    hold_workers_after_the_canary(app)
    states = []
    load = KeepAliveLoad.during(server, clients: 8) do
      restarting = Thread.new { restart(server) }
      wait_for("two workers that start", within: 60) { workers(server).count("starting") == SURGE }
      let_go(app)
      states << workers(server) until restarting.join(0.001)
      assert_equal 2, restarting.value
    end
    assert_within_bounds(states)
    assert_empty load.failures
    assert_equal [2] * WORKERS, generations(server)
  end

  private

  # How many may be replaced at a time depends on that.
  def wait_until_memory_is_known(server)
    wait_for("a look at the memory", within: 30) do
      server.status["workers"].all? { |worker| worker["memory_bytes"] }
    end
  end

  # New workers wait, so that the test sees how many start at a time.
  def hold_workers_after_the_canary(app)
    version(2, app, <<~RUBY)
      Highball.after_fork do |number|
        sleep 0.01 until number == #{WORKERS + 1} || File.exist?(File.join(__dir__, "go"))
      end
      #{CONFIG}
    RUBY
  end

  def assert_within_bounds(states)
    refute_empty states
    assert_operator states.map(&:length).max, :<=, WORKERS + SURGE
    assert_operator states.map { |all| all.count("serving") }.min, :>=, WORKERS
  end
end
