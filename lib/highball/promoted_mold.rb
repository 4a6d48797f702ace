# frozen_string_literal: true

require_relative "cable_server"
require_relative "mold"

module Highball
  # A mold that was a worker. It no longer serves; otherwise it is like any other mold.
  class PromotedMold < Mold
    # careful:: whether the refork is an automatic one: native extensions then have to bear nothing that Ruby
    #           does not do without being asked.
    def initialize(control, app, careful: false, may_refork: false)
      super(control, may_refork: may_refork)
      @app = app
      @careful = careful
      @booted = true
    end

    # Forks workers until the supervisor goes away. Returns in each of them: the worker.
    def start
      OomScore.mold
      take_signals
      prepare_fork
      name_process
      Checkpoint.pass("mold.promoted")
      @control.say(:promoted)
      serve_orders || exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException -- hooks may raise anything
      @control.say(:failed, error: Diagnosis.fields_of(e)[:error])
      $stdout.flush
      exit!(1)
    end

    private

    def prepare_fork
      CableServer.forget
      super
    end

    # Requests have left holes in the heap, which each worker would fill separately. If compaction crashes this process,
    # the previous mold stays.
    def warm_up = @app.warm_up(compact: !@careful, reforked: true)
  end
end
