# frozen_string_literal: true

require_relative "checkpoint"

module Highball
  # The spawn journey: the named steps from a bare Ruby to an application that can be forked. Each step is reported to
  # the supervisor when it begins, so that the supervisor knows in which step a failure, hang or crash happened.
  class Journey
    STEPS = %i[start_ruby load_highball find_app load_bundler load_app prepare_fork].freeze

    # A step did not end in time. The backtrace shows where it is.
    class TookTooLong < StandardError
      def initialize(backtrace)
        super("the boot takes longer than boot_timeout")
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
