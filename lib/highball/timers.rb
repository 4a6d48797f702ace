# frozen_string_literal: true

module Highball
  # Blocks to be called at a time. Of one thread.
  class Timers
    Timer = Struct.new(:time, :action)
    private_constant :Timer

    # Cancelled timers are kept until there are as many, and more of them than of others.
    MOST_CANCELLED = 64

    # Seconds of the monotonic clock.
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def initialize
      @timers = [] # by time, the latest first
      @cancelled = 0
    end

    # Returns a timer, for +cancel+.
    def add(seconds, &action)
      timer = Timer.new(Timers.now + seconds, action)
      @timers.insert(@timers.bsearch_index { |other| other.time <= timer.time } || @timers.size, timer)
      timer
    end

    def cancel(timer)
      return unless timer.action

      timer.action = nil
      @cancelled += 1
      return unless @cancelled > MOST_CANCELLED && @cancelled > @timers.size / 2

      @timers.select!(&:action)
      @cancelled = 0
    end

    # Calls the blocks whose time has come.
    def run_due
      now = Timers.now
      while (timer = first) && timer.time <= now
        action = @timers.pop.action
        timer.action = nil
        action.call
      end
    end

    # Seconds until the first one's time, or nil.
    def rest
      timer = first and [timer.time - Timers.now, 0.0].max
    end

    private

    # The first that is not cancelled.
    def first
      until @timers.empty? || @timers.last.action
        @timers.pop
        @cancelled -= 1
      end
      @timers.last
    end
  end
end
