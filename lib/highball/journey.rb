# frozen_string_literal: true

require_relative "checkpoint"

module Highball
  # The spawn journey: the named steps from a bare Ruby to an application that can be forked. Each step is told
  # to the supervisor when it begins, so that a failure, a hang and a crash can be placed.
  class Journey
    STEPS = %i[start_ruby load_highball find_app load_bundler load_app prepare_fork].freeze

    # What the supervisor finds when a step does not end. The backtrace says where it is.
    class TookTooLong < StandardError
      def initialize(backtrace)
        super("it was not done after the time that a boot may take")
        set_backtrace(backtrace)
      end
    end

    attr_reader :current

    def initialize(control)
      @control = control
      @current = STEPS.first
    end

    # Runs the block as this step.
    def step(name)
      raise ArgumentError, "no such step: #{name}" unless STEPS.include?(name)

      @current = name
      @control.say(:step, step: name)
      Checkpoint.pass("mold.#{name}")
      yield
    end
  end
end
