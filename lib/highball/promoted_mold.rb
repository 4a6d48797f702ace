# frozen_string_literal: true

require_relative "mold"

module Highball
  # A mold that was a worker: it has served, serves never again, and is forked from like any other.
  class PromotedMold < Mold
    # threads:: how many have served.
    def initialize(control, app, threads:)
      super(control)
      @app = app
      @threads = threads
      @booted = true
    end

    # Forks workers until the supervisor goes away. Returns in each of them: the worker.
    def start
      take_signals
      prepare_fork
      name_process
      Checkpoint.pass("mold.promoted")
      @control.say(:promoted)
      serve_orders || exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException -- hooks may raise anything
      @control.say(:failed, error: Diagnosis.new(e).error)
      $stdout.flush
      exit!(1)
    end

    private

    # Requests have left holes everywhere, which each worker would fill for itself. If this process dies of having its
    # objects moved, the mold that there was keeps.
    def warm_up = @app.warm_up(compact: true, threads: @threads)
  end
end
