# frozen_string_literal: true

require_relative "hub_connection"

module Highball
  # A thread of this process with a connection to the hub. When the connection ends, for example in a hot restart, the
  # thread connects again. Classes define `serve`, which serves a connection until it ends, and `report`, which says why
  # there is none.
  class HubThread
    # Time to connect, and the longest pause between two attempts, in seconds.
    TIME = 5
    PAUSE = 2

    @all = []
    class << self
      # The threads of this process.
      attr_reader :all
    end

    # Returns whether this process has the thread. (A fork has not.)
    def own? = @pid == Process.pid

    # Ends the thread.
    def stop
      HubThread.all.delete(self)
      @stopped = true
      @thread.kill.join if own? && @thread != Thread.current
    end

    private

    def start_thread(name)
      @pid = Process.pid
      @failures = 0
      HubThread.all << self
      @thread = fork_safe_thread { attempt until @stopped }
      @thread.name = name
    end

    # It ends before the worker is forked from.
    def fork_safe_thread(&)
      Thread.new(&).tap { |thread| thread.thread_variable_set(:fork_safe, true) }
    end

    # (The first failure is normal: a hot restart ends connections, and the next attempt finds the new server.)
    def attempt
      serve
    rescue *failures => e
      report(e) if @failures == 1
      sleep(@failures.zero? ? 0.05 : PAUSE)
      @failures += 1
    end

    # What ends a connection, or keeps the thread from one.
    def failures = [PublishError, SystemCallError, IOError]
  end
end
