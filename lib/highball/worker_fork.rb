# frozen_string_literal: true

require_relative "checkpoint"

module Highball
  # Forks a process that is a child of `highball`, and not of this one: an intermediate process forks it, and ends at
  # once. Hooks on Process._fork, of the application and of its gems (ActiveSupport::ForkTracker, the agents of
  # monitoring services), see one fork from this process: none of them runs in the intermediate process.
  module WorkerFork
    # There is no new process.
    class Failed < StandardError
    end

    # The same as Process.fork. It returns the number of the intermediate process, which hooks get as well.
    #
    # guardian:: forks the new process as its child instead, and watches over it. `begin` is called in the guardian's
    #            process before that, and `watch` with the number of the new process afterwards; it does not return.
    def self.fork(guardian = nil)
      @asking = Thread.current
      @guardian = guardian
      Process.fork
    ensure
      @asking = @guardian = nil
    end

    # Whether this thread has asked for such a fork. Once, because hooks may fork, too.
    def self.asked_for?
      asked = Thread.current.equal?(@asking)
      @asking = nil if asked
      asked
    end

    # Waits for the end of the intermediate process.
    def self.conclude(intermediate)
      _pid, status = Process.wait2(intermediate)
      raise Failed, "the intermediate process #{status}" unless status.success?

      intermediate
    end

    # Calls the block, which forks, in a process between the mold and the new one. It has no caller for an error.
    def self.fork_or_end
      yield
    rescue SystemCallError => e
      warn "highball: cannot fork a process: #{e.message}"
      exit!(1)
    end

    # Calls the block, which forks, in the guardian's process, if there is to be one. Returns 0, in the new process.
    def self.below_guardian(&block)
      return 0 unless @guardian

      @guardian.begin
      forked = fork_or_end(&block)
      @guardian.watch(forked) if forked.positive?
      0
    end

    # Below all hooks, because this file is loaded before the application.
    module BelowHooks
      def _fork
        return super unless WorkerFork.asked_for?

        intermediate = super
        return WorkerFork.conclude(intermediate) if intermediate.positive?

        Checkpoint.pass("fork.intermediate")
        return WorkerFork.below_guardian { super } if WorkerFork.fork_or_end { super }.zero?

        Checkpoint.pass("fork.worker_forked")
        exit!(0) # without the application's at_exit blocks
      end
    end
    Process.singleton_class.prepend(BelowHooks)
  end
end
