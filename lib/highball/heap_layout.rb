# frozen_string_literal: true

require_relative "heap"

module Highball
  # Lays out Ruby's heap before a process forks, so that the forked processes share its pages for long.
  #
  # Two things end the sharing. First, new objects take free slots, and a page is copied for the first one: so objects
  # that stay lie on pages without free slots. Ruby compacts the heap for that, or objects without a use, the
  # fillers, take these slots. Second, a complete collection writes to memory of all objects, and Ruby makes one when a
  # minor collection leaves too few slots free: so there is enough room for new objects, and Ruby regards fewer as too
  # few than it does by default (`highball` starts molds with RUBY_GC_HEAP_FREE_SLOTS_MIN_RATIO=0.05).
  #
  # More room means fewer collections, and more memory of each process: new objects are written to all of it in turn.
  module HeapLayout
    # By which a user chooses the share of slots that are free when Ruby has let a heap grow.
    ROOM_BY = "RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO"
    # By which Ruby knows the share of slots that are to be free after a collection, and its default.
    LEAST_BY = "RUBY_GC_HEAP_FREE_SLOTS_MIN_RATIO"
    LEAST = (Float(ENV.fetch(LEAST_BY, 0.2), exception: false) || 0.2).clamp(0.0, 1.0)
    # What running requests hold of that at most, not free after a collection: of the slots of some size, it is more.
    HELD_BY_REQUESTS = Heap.several_sizes? ? 0.2 : 0.15
    # The share of slots that is free in a new mold. Promoted molds use the minimum: memory counts more there.
    ROOM = 1.0 / 3
    ROOM_AFTER_REFORK = LEAST + HELD_BY_REQUESTS
    # Live slots up to which a heap stays in the processor's caches, a few MiB, and the share that is free there:
    # collections are cheap then, and what they free is still in the caches when it is used again. An application with
    # Rails has more.
    SMALL = 100_000
    SMALL_ROOM = 0.2
    # Ruby gives pages back that are free beyond this share (RUBY_GC_HEAP_FREE_SLOTS_MAX_RATIO).
    MOST_ROOM = 0.65
    # Collections that an object has to survive until minor ones do not write to it any more.
    OLD_AFTER = 3
    # What every object begins with, and one element of an array (bytes).
    HEADER = 16
    ELEMENT = 8

    module_function

    # Ruby has read it when it started, and programs that the application starts need not have it.
    def forget_least
      ENV.delete(LEAST_BY) if ENV.delete("HIGHBALL_LEAST_FREE_SLOTS")
    end

    # compact:: whether to compact the heap also where Ruby's warmup does not (before 3.3). A native extension that is
    #           not safe to compact then crashes this process.
    # reforked:: whether this process has served requests.
    # room:: the share of slots that are to be free, if that is decided (Collector).
    def arrange(compact: false, reforked: false, room: nil)
      usual = room || (reforked ? ROOM_AFTER_REFORK : [ROOM, ROOM_AFTER_REFORK].max)
      @fillers = nil # of the process that forked this one
      GC.start
      if Process.respond_to?(:warmup)
        without_collector { arrange_sizes(usual) } if known_sizes?
        Process.warmup # compacts, gives back empty pages, and lets Ruby allocate as many again
      else
        GC.compact if compact && GC.respond_to?(:compact)
        without_collector { arrange_without_warmup(usual) }
        OLD_AFTER.times { GC.start(full_mark: false) }
      end
    end

    # Whether this process has more live slots than a small application.
    def large? = GC.stat(:heap_live_slots) > SMALL

    # Gives the heap the slots that the large application in this folder needs in any case.
    def begin_large(folder)
      without_collector { Ruby31::HeapPages.begin_large(folder) } unless Heap.several_sizes?
    end

    # Each size of slots is a separate heap: Ruby collects as soon as one of them has no free slot.
    def arrange_sizes(usual_room)
      live = GC.stat(:heap_live_slots)
      share = room(live, usual_room)
      fillers = GC.stat_heap.values.map { |heap| arrange_size(heap, share) }
      @fillers = fillers if live > SMALL
    end

    # Returns what takes the free slots of this size that are too many.
    def arrange_size(heap, share)
      live = heap[:total_allocated_objects] - heap[:total_freed_objects]
      free = heap[:heap_eden_slots] - live
      slots_of_page = heap[:heap_eden_slots] / [heap[:heap_eden_pages], 1].max
      may_be_allocated = heap.fetch(:heap_allocatable_pages, 0) * slots_of_page
      wanted = free_beside(live, share)
      too_many = free + may_be_allocated - wanted
      make_garbage(wanted) { slot(heap[:slot_size]) } if too_many.negative?
      Array.new(too_many.clamp(0, free)) { slot(heap[:slot_size]) }
    end

    # (Up to Ruby 3.2.)
    def arrange_without_warmup(usual_room)
      stat = GC.stat
      live = stat[:heap_live_slots]
      slots = Heap.page_slots(stat)
      share = room(live, usual_room)
      free = slots - live
      return make_garbage(free_beside(live, share) - free) { Object.new } if live <= SMALL || Heap.several_sizes?

      @fillers = Ruby31::HeapPages.fill(free, Heap::PAGE_BYTES) { |taken| free_beside(live + taken, share) }
    end

    # Slots that are free if this share of all slots is.
    def free_beside(live, share) = (live * share / (1 - share)).ceil

    # The share of slots that are to be free; `usual` where neither the size of the heap nor the user decides it.
    def room(live, usual)
      return SMALL_ROOM if live <= SMALL

      chosen = Float(ENV.fetch(ROOM_BY, ""), exception: false)
      (chosen || usual).clamp(0.0, MOST_ROOM)
    end

    # An object that takes a slot of this size.
    def slot(bytes) = Array.new((bytes - HEADER) / ELEMENT)

    # The slots of these objects are free after the next collection.
    def make_garbage(count, &) = Array.new([count, 0].max, &).clear

    def known_sizes? = Heap.several_sizes? && GC.stat_heap(0).key?(:total_freed_objects)

    def without_collector
      was_disabled = GC.disable
      yield
    ensure
      GC.enable unless was_disabled
    end
  end
end
