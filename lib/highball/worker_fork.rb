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
    def self.fork
      @asking = Thread.current
      Process.fork
    ensure
      @asking = nil
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

    # Below all hooks, because this file is loaded before the application.
    module BelowHooks
      def _fork
        return super unless WorkerFork.asked_for?

        intermediate = super
        return WorkerFork.conclude(intermediate) if intermediate.positive?

        Checkpoint.pass("fork.intermediate")
        begin
          worker = super
        rescue SystemCallError => e
          warn "highball: cannot fork a worker: #{e.message}"
          exit!(1)
        end
        return worker if worker.zero?

        Checkpoint.pass("fork.worker_forked")
        exit!(0) # without the application's at_exit blocks
      end
    end
    Process.singleton_class.prepend(BelowHooks)
  end
end
