# frozen_string_literal: true

require_relative "heap"
require_relative "heap_layout"

module Highball
  # When a worker collects garbage: between requests rather than within one, where that is possible.
  #
  # Ruby collects when no slot is free, which is in the middle of a request; its client waits for 10 to 50 ms longer.
  # So a worker that has nothing to do collects when most of its free slots are used. The next request finds them free.
  # It costs no more collections than a part in `1 - MOST_USED`, and under full load, when requests wait, none at all:
  # then Ruby decides, as always. A complete collection, which Ruby makes when there are many more old objects than
  # after the last, is brought forward in the same way.
  class Collector
    # What `highball` has decided: the share of slots that are to be free, in per cent; `on`, with the usual share; or
    # why Ruby decides all.
    DECISION = "HIGHBALL_COLLECTOR"
    ON = "on"
    # The share of the free slots that is used when an idle worker collects.
    MOST_USED = 0.75
    # Of what makes Ruby collect completely, the share at which an idle worker does.
    MOST_OLD = 0.9
    LIMITS = { old_objects: :old_objects_limit, oldmalloc_increase_bytes: :oldmalloc_increase_bytes_limit,
               remembered_wb_unprotected_objects: :remembered_wb_unprotected_objects_limit }.freeze
    # Where slots have several sizes, nothing tells how many of each are left. So an estimate grows until Ruby has
    # collected without being asked.
    GROWTH = 1.02

    # Takes the decision out of the environment.
    def self.take_decision
      @decision = ENV.delete(DECISION)
    end

    # The share of slots that are to be free, if another than the usual one.
    def self.room
      percent = Integer(@decision, exception: false) if @decision
      percent && (percent / 100.0)
    end

    def self.on? = @decision == ON || !room.nil?

    # {name: what is on}, or {off: why}.
    def self.description
      return { off: @decision } unless on?

      { name: ["garbage collected between requests", ("#{@decision}% of the heap free" if room)].compact.join(", ") }
    end

    # No garbage is collected from here on, also in what is forked, until `go_on`: the first requests of a server that
    # starts do not wait for it. (An application that has disabled the collector chooses itself.)
    def self.pause = @paused = !GC.disable

    def self.go_on
      GC.enable if paused?
      @paused = false
    end

    def self.paused? = @paused || false

    # Calls the block, in which an application may disable the collector: it is not paused meanwhile.
    def self.let_choose
      was_paused = paused?
      go_on
      yield
    ensure
      pause if was_paused
    end

    # One for this process; nil if Ruby decides all, or if collections are so short that it does not matter.
    def self.of_worker = (new if on? && HeapLayout.large?)

    def initialize
      @mutex = Mutex.new
      @usual = nil
      note
    end

    # To be called when a request has ended. The block tells whether this worker has nothing to do. If several threads
    # call it at the same time, one of them looks.
    def after_request(&)
      return unless @mutex.try_lock

      begin
        look(&)
      ensure
        @mutex.unlock
      end
    end

    private

    def look
      allocated = GC.stat(:total_allocated_objects)
      return measure(allocated) if GC.count != @count
      return if @usual.nil? || allocated - @begun < @usual * MOST_USED

      collect if yield
    end

    # Ruby has collected. If that was for lack of slots, there is room for what was allocated since the last time.
    def measure(allocated)
      @usual = (allocated - @begun) / (GC.count - @count) if GC.latest_gc_info(:gc_by) == :newobj
      note(allocated)
    end

    def collect
      Heap.collect(complete: complete_is_due?)
      @usual = Heap.several_sizes? ? @usual * GROWTH : Ruby31::HeapPages.free_slots(GC.stat)
      note
    end

    def note(allocated = GC.stat(:total_allocated_objects))
      @count = GC.count
      @begun = allocated
    end

    def complete_is_due?
      LIMITS.any? do |now, limit|
        GC.stat(now) > GC.stat(limit) * MOST_OLD
      rescue ArgumentError # another Ruby has other figures
        false
      end
    end
  end
end
