# frozen_string_literal: true

require_relative "heap"
require_relative "native"

module Highball
  # Gives memory back to the system that requests have dropped, and that malloc would keep for later ones.
  #
  # While a worker serves, it gives back its free pages about once a second, which takes less than a millisecond. When
  # it has become idle, it collects garbage first. A minor collection suffices for that, and does not write to the
  # memory of old objects, which the worker shares with others. (While requests are served, Ruby decides when:
  # what survives some collections that come too early counts as old, and is kept for longer.) Only streams last
  # long enough for their threads and fibers to become old. If there were many, the worker collects completely.
  class FreedMemory
    LOOK_EVERY = 1.0 # seconds, while requests are served
    IDLE_LOOK_EVERY = 5.0 # seconds
    IDLE_AFTER = 5.0 # seconds without requests
    # With fewer streams, a complete collection is not worth it: each keeps some 25 KiB.
    MANY_STREAMS = 32
    # Giving back takes at most this part of a CPU's time: a large heap with many holes takes longer.
    MOST_OF_TIME = 0.001

    def initialize(server)
      @server = server
      @seen = server.tickets
      @served_at = nil # since the last collection
      @give_back_at = 0
      @streams = 0 # most at a look since the last collection
    end

    # Seconds until the next look.
    def pause = @served_at ? LOOK_EVERY : IDLE_LOOK_EVERY

    # Called after each `pause`. Returns whether it has given memory back.
    #
    # at:: seconds of the monotonic clock
    def look(at = now)
      @streams = [@streams, @server.streams].max
      if served?
        @served_at = at
        at >= @give_back_at && give_back(at)
      elsif @served_at && at - @served_at >= IDLE_AFTER && !@server.busy?
        @served_at = nil
        collect
        give_back(at)
      else
        false
      end
    end

    private

    # Whether requests have begun since the last look.
    def served?
      before = @seen
      @seen = @server.tickets
      @seen != before
    end

    def collect
      Heap.collect(complete: @streams >= MANY_STREAMS)
      @streams = 0
    end

    # (In CPU time, since the thread waits for the GVL afterwards.)
    def give_back(at)
      began = cpu_time
      Native.trim_malloc
      @give_back_at = at + ((cpu_time - began) / MOST_OF_TIME)
      true
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def cpu_time = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  end
end
