# frozen_string_literal: true

# marks: root

require_relative "../../support/kill_matrix_test_case"
require_relative "../../support/load"

# kill -9 of every process, at every step of a hot restart: of the old `highball`, the new one, and their processes.
class KillMatrixOfUpgradesTest < KillMatrixTestCase
  OLD_ONES = { mold: :succeeded, worker: :succeeded }.freeze

  # `newcomer` is the new mold, or the new worker, that waits at the step.
  MATRIX = { hot_restart: {
    %w[mold.load_highball mold.load_app mold.booted] => { next_highball: :kept, newcomer: :kept, **OLD_ONES },
    # A new process whose application has booted replaces the processes that it loses.
    %w[worker.introduced] => { next_highball: :kept, mold_of_next: :succeeded, newcomer: :succeeded, **OLD_ONES },
    %w[upgrade.ready] => { next_highball: :kept, mold_of_next: :succeeded, **OLD_ONES },
    # The new one may serve, and no longer needs the old one.
    %w[upgrade.let_in] => { highball: :succeeded, next_highball: :kept, **OLD_ONES },
    # It may serve: then the old one never serves again.
    %w[upgrade.taking_over] => { highball: :succeeded, next_highball: :kept_or_ends, **OLD_ONES },
    # It serves.
    %w[upgrade.handed_over drain.front_drained drain.workers_retired] => {
      highball: :succeeded, next_highball: :ends, **OLD_ONES
    }
  } }.freeze
  # One or two of each part of a hot restart.
  USUAL = [["mold.load_app", :highball], ["mold.load_app", :next_highball], ["worker.introduced", :newcomer],
           ["upgrade.ready", :mold], ["upgrade.let_in", :highball], ["upgrade.taking_over", :next_highball],
           ["drain.workers_retired", :worker]].map { |row| [:hot_restart, *row] }.freeze

  matrix MATRIX, usual: USUAL

  private

  def hot_restart(&outcome)
    serve_with_checkpoints
    release(@releases.last)
    return upgrade_until_killed(&outcome) if HIGHBALLS.include?(@victim)

    outcomes = Load.during(@server, clients: CLIENTS) { upgrade_until_killed(&outcome) }
    # A connection may be closed between two requests; nothing is refused, or breaks off.
    assert_empty outcomes.map(&:result).uniq - [200, "closed"]
  end

  def upgrade_until_killed
    @server.signal("USR2")
    kill_at_the_step
    yield
  end

  # --- outcomes

  def kept
    serves(1)
    assert_equal @server.pid, @server.status["pid"]
    assert_match(/\A1 /, @server.get("/").body)
  end

  def succeeded
    wait_for("the new process, with #{WORKERS} workers", within: WITHIN) do
      @successor = @server.status["pid"]
      @successor != @server.pid && settled?(@server.status)
    rescue RuntimeError
      false # there is a moment in which neither is found
    end
    assert_match(/\A2 /, @server.get("/").body)
    wait_for("the end of the old mold and workers") { left_of_others.length == 1 + WORKERS }
    assert_empty Dir.children(@spool)
    stop_successor
  end

  # Whether the new one has ended before or after it could report that it serves.
  def kept_or_ends
    wait_for("what the old process does", within: WITHIN) do
      !@server.running? || @server.log.include?("this process keeps serving")
    end
    @server.running? ? kept : ends
  end

  def ends
    refute_predicate @server.wait, :success?
    assert_empty @server.orphans
  end

  # All descendants of both processes, and all processes with the mark (which a Ruby that names its process may
  # overwrite), except for the new `highball` itself, and the first one, which is its PID proxy as long as it lives.
  def left_of_others
    all = ProcessFacts.tree(@server.pid) | ProcessFacts.tree(@successor) | @server.pids
    all - @server.own_pids - @server.own_pids(@successor)
  end

  def stop_successor
    HighballServer.kill(@successor, "TERM")
    assert_empty @server.orphans(within: WITHIN)
    @server.wait
  end
end
