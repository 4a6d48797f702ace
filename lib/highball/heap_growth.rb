# frozen_string_literal: true

require_relative "heap"
require_relative "heap_layout"

module Highball
  # Ruby's heap grows by many pages at a time while an application boots.
  #
  # The collector keeps notes on each page (mark bits and the like, some hundred bytes) in malloc's memory, and every
  # collection writes to those of all pages. After a collection Ruby decides how many pages it may allocate, and
  # allocates one whenever it needs one more. Then the notes lie here and there among what the application allocates
  # meanwhile, and a process that is forked copies about a page of malloc's memory for each page of the heap. Allocated
  # in one go, ten lie on a page. A finalizer tells when there has been a collection.
  #
  # From Ruby 3.2 on, pages are larger: there are fewer, and the notes on one take nearly half a page.
  module HeapGrowth
    # It takes a collection more each time: a smaller increase is not worth that.
    FEWEST_PAGES = 16
    # Slots that the heap has from the start of the boot of an application that needs more in any case. Otherwise Ruby
    # collects 50 times while Rails boots, a fifth of the time; with them, 20 times.
    LARGE = 200_000
    # Keeps nothing alive: an object that its own finalizer refers to is never collected.
    FINALIZER = proc { HeapGrowth.after_collection }

    module_function

    # large:: whether the application will have a large heap.
    def watch(large: false)
      return if Heap.several_sizes?

      HeapLayout.add_slots(LARGE - GC.stat(:heap_available_slots)) if large
      @watching = true
      notice_collection
    end

    def unwatch
      @watching = false
    end

    # Ruby calls finalizers as well when the process ends, also those that are made meanwhile.
    def after_collection
      return unless @watching && GC.count > @collections

      HeapLayout.allocate_pages if worthwhile?
      notice_collection
    end

    def notice_collection
      @collections = GC.count
      ObjectSpace.define_finalizer(Object.new, FINALIZER)
    end

    def worthwhile?
      GC.stat(:heap_live_slots) > HeapLayout::SMALL && GC.stat(:heap_allocatable_pages) >= FEWEST_PAGES
    end
  end
end
