# frozen_string_literal: true

module Highball
  # Steps at which a test can make a mold, what it forks, or a process between them wait, so that the test can kill a
  # process exactly there. For tests only (CONTRIBUTING.md, "Checkpoints"): without the environment variable
  # HIGHBALL_CHECKPOINTS, passing one costs a look at a constant. crates/supervisor/src/checkpoint.rs is the same for
  # `highball`.
  module Checkpoint
    # The folder in which a test names the steps to stop at.
    FOLDER = ENV.fetch("HIGHBALL_CHECKPOINTS", nil)

    # Every step, in the order of a process's life. Those of the mold's boot are the steps of its Journey.
    STEPS = %w[
      mold.load_highball mold.find_app mold.load_bundler mold.load_app mold.prepare_fork mold.lay_out_heap mold.booted
      fork.intermediate fork.worker_forked
      companion.forked companion.born
      worker.born worker.introduced worker.ready worker.draining worker.exiting
      worker.threads_joined mold.promoted
    ].freeze

    LONGEST_WAIT = 60 # seconds, also if the test has ended
    LOOK_EVERY = 0.002 # seconds

    module_function

    # Waits here while the test's folder holds a file with the name of this step.
    def pass(step, folder: FOLDER)
      wait_at(step, folder) if folder
    end

    def wait_at(step, folder)
      raise ArgumentError, "there is no such checkpoint: #{step}" unless STEPS.include?(step)

      asked = File.join(folder, step)
      return unless File.exist?(asked)

      unfinished = "#{asked}.#{Process.pid}"
      File.write(unfinished, Process.pid.to_s)
      File.rename(unfinished, "#{asked}.reached")
      ends_at = now + LONGEST_WAIT
      sleep LOOK_EVERY while File.exist?(asked) && now < ends_at
    end
    private_class_method :wait_at

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    private_class_method :now
  end
end
