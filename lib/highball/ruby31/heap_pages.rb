# frozen_string_literal: true

require_relative "../native"

module Highball
  module Ruby31
    # The heap before Ruby 3.2, where all slots have one size. Nothing else needs this file.
    module HeapPages
      # Slots of the heap of an application with Rails from the start of its boot, and those for each of its files.
      # Otherwise Ruby collects 50 times while Rails boots, a fifth of the time.
      LARGE = 300_000
      OF_FILE = 1500
      MOST = 1_000_000
      # The application's files.
      FILES = "{app,lib}/**/*.rb"

      # Takes a slot that would be free on a page of objects that stay.
      Filler = Class.new

      module_function

      # Gives the heap the slots that the large application in this folder needs in any case.
      def begin_large(folder)
        files = Dir.glob(FILES, base: folder).length
        make_garbage((LARGE + (OF_FILE * files)).clamp(..MOST) - GC.stat(:heap_available_slots))
      end

      # Without compaction, the emptiest pages are the room, and fillers take the free slots of all others. Returns
      # these fillers. The block gets their number, and returns how many slots are to be free.
      def fill(free, page_bytes)
        all = Array.new(free) { Filler.new }
        apart, fillers = Native.by_page(all, page_bytes)
        wanted = yield fillers.size
        fillers << apart.pop while apart.size > wanted
        make_garbage(wanted - apart.size)
        [all, apart].each(&:clear) # or the stack, where Ruby may still find them, would keep what they hold
        fillers
      end

      # Slots of the pages that hold objects. Empty pages ("tomb") have as many slots as others.
      def page_slots(stat)
        pages = stat[:heap_allocated_pages]
        pages.zero? ? 0 : stat[:heap_available_slots] * (pages - stat[:heap_tomb_pages]) / pages
      end

      # Slots that Ruby may allocate without a collection.
      def free_slots(stat)
        pages = stat[:heap_allocated_pages]
        of_page = pages.zero? ? 0 : stat[:heap_available_slots] / pages
        stat[:heap_free_slots] + (stat[:heap_allocatable_pages] * of_page)
      end

      # The slots of these objects are free after the next collection.
      def make_garbage(count) = Array.new([count, 0].max) { Filler.new }.clear
    end
  end
end
