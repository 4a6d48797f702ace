# frozen_string_literal: true

module Highball
  # The garbage collector's figures for this process's heap, named as in PROTOCOL.md of the supervisor.
  module Heap
    NAMES = {
      live_slots: :heap_live_slots, free_slots: :heap_free_slots, pages: :heap_allocated_pages,
      total_allocated_objects: :total_allocated_objects, total_freed_objects: :total_freed_objects,
      malloc_increase_bytes: :malloc_increase_bytes,
      gc_count: :count, major_gc_count: :major_gc_count, gc_time_ms: :time
    }.freeze
    # By which a user chooses the share of slots that are free when Ruby has let a heap grow, and its default.
    ROOM_BY = "RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO"
    ROOM = 0.4
    # Live slots up to which a heap stays in the processor's caches: a few MiB. An application with Rails has more.
    SMALL = 100_000
    PAGE_BYTES = GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE, 64 * 1024)

    module_function

    # Integers by name; nil if the garbage collector does not have these figures.
    def figures(stat = GC.stat)
      figures = NAMES.transform_values { |name| stat[name] }
      return unless figures.values.all?(Integer)

      figures.merge(page_slots: page_slots(stat), page_bytes: PAGE_BYTES)
    end

    # Lets the heap grow until as much of it is free as Ruby itself gives one that it lets grow. Ruby does that only if
    # less than a fifth is free after a collection. A heap that was just laid out has a little more, so that a request
    # which makes many objects would have twice as many collections. A small heap is better left small: collections are
    # cheap there, and what they free is still in the caches when it is used again.
    def make_room
      stat = GC.stat
      live = stat[:heap_live_slots]
      wanted = (live / (1 - room)).ceil
      return if live <= SMALL || wanted <= stat[:heap_available_slots]

      was_disabled = GC.disable
      Array.new(wanted - live) { Object.new }.clear
      GC.enable unless was_disabled
      GC.start
    end

    def room
      (Float(ENV.fetch(ROOM_BY, ROOM), exception: false) || ROOM).clamp(0.0, 0.65)
    end

    # Slots of the pages that hold objects. From Ruby 3.2 on, GC.stat_heap has them for each slot size.
    def page_slots(stat)
      return page_slots_of_one_size(stat) unless GC.respond_to?(:stat_heap)

      GC.stat_heap.values.sum { |heap| heap.fetch(:heap_eden_slots) { return stat[:heap_available_slots] } }
    end

    # Empty pages ("tomb") have as many slots as others.
    def page_slots_of_one_size(stat)
      pages = stat[:heap_allocated_pages]
      pages.zero? ? 0 : stat[:heap_available_slots] * (pages - stat[:heap_tomb_pages]) / pages
    end
  end
end
