# frozen_string_literal: true

require_relative "mold"

module Highball
  # A mold that was a worker: it has served, serves never again, and is forked from like any other.
  class PromotedMold < Mold
    def initialize(control, app)
      super(control)
      @app = app
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
  end
end
