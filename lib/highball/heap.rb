# frozen_string_literal: true

require_relative "ruby31/heap_pages"

module Highball
  # The garbage collector's figures for this process's heap, named as in PROTOCOL.md of the supervisor.
  module Heap
    NAMES = {
      live_slots: :heap_live_slots, free_slots: :heap_free_slots, pages: :heap_allocated_pages,
      total_allocated_objects: :total_allocated_objects, total_freed_objects: :total_freed_objects,
      malloc_increase_bytes: :malloc_increase_bytes,
      gc_count: :count, major_gc_count: :major_gc_count, gc_time_ms: :time
    }.freeze
    PAGE_BYTES = GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE, 64 * 1024)

    module_function

    # Integers by name; nil if the garbage collector does not have these figures.
    def figures(stat = GC.stat)
      figures = NAMES.transform_values { |name| stat[name] }
      return unless figures.values.all?(Integer)

      figures.merge(page_slots: page_slots(stat), page_bytes: PAGE_BYTES)
    end

    # Collects garbage: only new objects, or all. An application that has disabled the collector chooses itself
    # when that happens.
    def collect(complete: false)
      is_disabled = GC.disable
      return if is_disabled

      GC.enable
      GC.start(full_mark: complete, immediate_sweep: true)
    end

    # Whether Ruby has slots of several sizes, each with separate pages (from 3.2 on).
    def several_sizes? = GC.respond_to?(:stat_heap)

    # Slots of the pages that hold objects. From Ruby 3.2 on, GC.stat_heap has them for each slot size.
    def page_slots(stat)
      return Ruby31::HeapPages.page_slots(stat) unless several_sizes?

      GC.stat_heap.values.sum { |heap| heap.fetch(:heap_eden_slots) { return stat[:heap_available_slots] } }
    end
  end
end
