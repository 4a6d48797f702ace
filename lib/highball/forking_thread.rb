# frozen_string_literal: true

module Highball
  # The thread of a mold that forks its workers. While other workers serve, the mold boots with a lower priority, so
  # that requests do not wait for it. Without privileges no thread can raise its priority again, and a fork has the
  # priority of the thread that made it. So the main thread boots, and this one, which is older and has the usual
  # priority, forks. In the forked process it is the main thread.
  class ForkingThread
    # Nice value to add, once or twice. The boot gets all idle CPU time. Of a CPU for which it competes with a worker,
    # it gets a quarter with 5, and a tenth with 10.
    STEP = 5
    # Nanoseconds for which the main thread has run, and has waited for a CPU: see proc(5).
    RUN_AND_WAITED = "/proc/self/schedstat"

    # Lowers the priority of the calling thread, for good.
    def self.lower_priority
      Process.setpriority(Process::PRIO_PROCESS, 0, Process.getpriority(Process::PRIO_PROCESS, 0) + STEP)
    end

    # Lowers it again if the main thread has run for longer than it has waited for a CPU. Then some CPUs are idle, and
    # the boot takes hardly longer. With all CPUs busy, it would take many times as long.
    def self.lower_priority_again(counts = RUN_AND_WAITED)
      run, waited = File.read(counts).split.map { |nanoseconds| Integer(nanoseconds) }
      lower_priority if waited < run
    rescue SystemCallError
      nil # this kernel does not count it
    end

    def initialize
      @jobs = Thread::Queue.new
      @results = Thread::Queue.new
      @thread = Thread.new { work }
      @thread.name = File.read("/proc/self/comm").chomp # ps(1) shows it as the name of the forked process
      @thread.report_on_exception = false
      @thread.thread_variable_set(:fork_safe, true)
    end

    # Runs a block, which forks, in the thread. Returns nil, or raises what the block has raised. In a forked process
    # the block returns a role, and the thread lives it: this method does not return there.
    def fork_by(&job)
      @jobs << job
      error = @results.pop
      raise error if error
    end

    private

    def work
      loop do
        role, error = outcome_of(@jobs.pop)
        return live(role) if role

        @results << error
      end
    end

    def outcome_of(job)
      [job.call, nil]
    rescue StandardError => e
      [nil, e]
    end

    def live(role)
      role = role.start while role
    end
  end
end
