# frozen_string_literal: true

# marks: root

require_relative "../../support/kill_matrix_test_case"

# kill -9 of every process, at every step of everything that one `highball` does.
class KillMatrixTest < KillMatrixTestCase
  BOOT = %w[
    mold.load_highball mold.find_app mold.load_bundler mold.load_app mold.prepare_fork mold.lay_out_heap mold.booted
  ].freeze
  OLD_ONES = { mold: :new, worker: :new }.freeze
  NEW_ONES = { next_mold: :old, canary: :old }.freeze

  # `newcomer` is the worker that waits at the step.
  MATRIX = {
    start: {
      # The first boot has to succeed: otherwise the server reports what failed, and ends.
      BOOT => { mold: :gives_up },
      %w[fork.intermediate fork.worker_forked] => { intermediate: :serves, mold: :serves },
      %w[worker.born worker.introduced worker.ready] => { newcomer: :serves, mold: :serves }
    },
    restart: {
      [*BOOT, "restart.booted"] => { next_mold: :old, **OLD_ONES },
      %w[fork.intermediate fork.worker_forked] => { intermediate: :old, next_mold: :old, **OLD_ONES },
      %w[worker.born worker.introduced] => { newcomer: :old, next_mold: :old, **OLD_ONES },
      %w[restart.canary_forked restart.canary_ready restart.admitted restart.replaced] => { **NEW_ONES, **OLD_ONES },
      # All new workers serve by then. A death that is noticed before that undoes the restart.
      %w[restart.last_retired] => { next_mold: :serves, canary: :serves, **OLD_ONES }
    },
    failing_restart: {
      %w[restart.undoing] => { canary: :old, mold: :old, worker: :old }
    },
    # `chosen` is the worker that is promoted, or the mold that it has become.
    refork: {
      %w[refork.asking refork.relieving refork.retiring] => { chosen: :old, mold: :old, worker: :old },
      # The existing mold forks one more.
      %w[fork.intermediate] => { intermediate: :old, chosen: :old, mold: :old },
      %w[worker.introduced] => { newcomer: :old, chosen: :old, mold: :old, worker: :old },
      %w[worker.threads_joined mold.promoted] => { chosen: :old, mold: :old, worker: :old },
      %w[refork.promoted refork.replaced refork.last_retired] => { chosen: :old, mold: :old, worker: :old },
      %w[refork.done] => { chosen: :old, next_worker: :old }
    },
    fork_from_promoted: {
      %w[fork.intermediate fork.worker_forked] => { intermediate: :old, chosen: :old, mold: :old, worker: :old },
      %w[worker.born worker.introduced] => { newcomer: :old, chosen: :old, mold: :old, worker: :old }
    },
    drain: {
      %w[drain.started drain.front_drained drain.workers_retired] => { worker: :drains, mold: :drains },
      %w[worker.draining worker.exiting] => { newcomer: :drains, mold: :drains }
    }
  }.freeze

  # One or two of each part of a life.
  USUAL = [
    [:start, "mold.load_app", :mold], [:start, "worker.born", :newcomer],
    [:restart, "mold.load_app", :next_mold], [:restart, "mold.load_app", :mold],
    [:restart, "fork.intermediate", :intermediate], [:restart, "worker.introduced", :newcomer],
    [:restart, "restart.canary_ready", :canary], [:restart, "restart.admitted", :worker],
    [:restart, "restart.replaced", :highball], [:restart, "restart.replaced", :next_mold],
    [:restart, "restart.last_retired", :next_mold], [:failing_restart, "restart.undoing", :canary],
    [:refork, "refork.asking", :chosen], [:refork, "mold.promoted", :chosen], [:refork, "refork.replaced", :mold],
    [:refork, "refork.replaced", :chosen], [:refork, "refork.replaced", :highball], [:refork, "refork.done", :chosen],
    [:fork_from_promoted, "fork.worker_forked", :chosen], [:drain, "drain.workers_retired", :worker]
  ].freeze

  matrix MATRIX, usual: USUAL

  private

  # --- scenarios: each brings a server to the step, kills the victim there, lets the server go on, and checks it

  def start
    @checkpoints.ask(@step)
    @server = HighballServer.new(@current, *options, **settings)
    @servers << @server
    kill_at_the_step
    yield
  end

  # The worker after the canary cannot start.
  def failing_restart(&outcome)
    number = (WORKERS * 2) - 1
    version(2, @releases.last, "Highball.after_fork { |number| raise 'no luck' if number > #{number} }\n#{CONFIG}")
    restart(&outcome)
  end

  def refork
    serve_with_checkpoints
    under_load do
      @server.signal("URG")
      kill_at_the_step
      yield
    end
  end

  # The worker that relieves the promoted one reaches the step first. The test waits for the second time.
  def fork_from_promoted
    serve_with_checkpoints("refork.promoted")
    under_load do
      @server.signal("URG")
      @checkpoints.wait_until_reached("refork.promoted")
      @checkpoints.ask(@step)
      @checkpoints.release("refork.promoted")
      kill_at_the_step
      yield
    end
  end

  # The victim is a worker, which has one request in flight.
  def drain
    held = FileUtils.touch(File.join(@releases.first, "held"))
    serve_with_checkpoints
    asking = ask_for_what_is_held
    @server.signal("TERM")
    FileUtils.rm(held) unless @step == "drain.started"
    kill_at_the_step
    FileUtils.rm_f(held)
    yield
    assert_equal 200, asking.value unless HIGHBALLS.include?(@victim)
  end

  # Makes the worker that has it the victim among the old ones.
  def ask_for_what_is_held
    asking = Thread.new { @server.get("/held", within: 60).status }
    asking.report_on_exception = false
    busy = wait_for("the request") { @server.status["workers"].find { |worker| worker["in_flight"] == 1 } }
    @old[:workers] = { busy["worker"] => busy["pid"] }
    asking
  end
end
