# frozen_string_literal: true

module Highball
  module Ruby31
    # What Highball::Compiler does otherwise in Ruby 3.1. Its YJIT has to be there from the start of the interpreter,
    # and is held until the application has been loaded (crates/yjit31).
    module Compiler
      # Set in a process that Highball has started with YJIT, which is to be held.
      HELD = "held"
      # A number of calls that no method has, by which the compiler's options are found in Ruby's memory.
      NEVER = 1_717_986_919

      def next_decision
        return super unless ENV.fetch(self::DECISION, nil) == HELD

        self::STARTED unless hold
      end

      def with_compiler = HELD
      def calls(decision) = decision == HELD ? NEVER : super

      # Turns it off until the application has been loaded. Returns whether that is possible.
      def hold
        require_relative "../native"
        Extension.load_if_built && Native.hold_compiler(code_mib, NEVER) && !enabled?
      end

      def wanted?(decision) = decision == HELD || super
      def turn_on = @decision == HELD ? Native.release_compiler(self::CALLS) : super

      # Ruby sets memory aside for code. What is not used goes back.
      def free_unused_code
        Native.free_unused_code if enabled?
      end
    end
  end
end
