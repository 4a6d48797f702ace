# frozen_string_literal: true

require "minitest/autorun"
require "highball/heap_growth"
require_relative "../support/run_ruby"

# Where the collector's notes on the pages of a heap lie that has grown while an application booted. Each example is
# another process.
class HeapGrowthTest < Minitest::Test
  include RunRuby

  PRELUDE = <<~RUBY
    require "fiddle"
    Highball::Extension.load
    GROWTH = Highball::HeapGrowth

    KEPT = []

    # Objects that stay, with memory of malloc's, among some that do not stay.
    def boot(count) = count.times { KEPT << Object.new << ("x" * rand(100..900)) << ("y" * rand(100..900))[0, 4] }

    def heap_pages = KEPT.map { |object| Fiddle.dlwrap(object) & -Highball::Heap::PAGE_BYTES }.uniq

    def boot_until_heap_may_grow = (boot 100 until GC.stat(:heap_allocatable_pages) > 50)

    # Grows the heap by pages that this block may allocate first. Returns on how many of the system's pages the notes on
    # them lie, for each of them. (Each page of the heap begins with their address.)
    def spread
      boot_until_heap_may_grow
      pages = GC.stat(:heap_allocatable_pages)
      before = heap_pages
      yield if block_given?
      boot pages * 100
      grown = heap_pages - before
      grown.map { |page| Fiddle::Pointer.new(page).ptr.to_i / 4096 }.uniq.size / grown.size.to_f
    end

    # Counts how often all pages are allocated.
    def count_allocations
      $allocations = 0
      Highball::HeapLayout.define_singleton_method(:allocate_pages) { $allocations += 1 }
    end
  RUBY

  def setup
    skip "pages of this Ruby are large" if Highball::Heap.several_sizes?
  end

  def test_notes_on_pages_that_are_allocated_in_one_go_lie_side_by_side
    assert_operator Float(ruby("srand 1; print spread")), :>, 0.6
    assert_operator Float(ruby("srand 1; print spread { Highball::HeapLayout.allocate_pages }")), :<, 0.3
  end

  def test_collections_are_noticed
    assert_operator Integer(ruby("count_allocations; GROWTH.watch; boot 200_000; print $allocations")), :>, 1
  end

  def test_a_small_heap_is_left_small
    script = "boot 10_000; 3.times { GC.start }; print GC.stat(:heap_allocated_pages)"
    assert_in_delta Integer(ruby("srand 1; #{script}")), Integer(ruby("srand 1; GROWTH.watch; #{script}")), 20
  end

  def test_it_ends
    assert_equal "0", ruby("count_allocations; GROWTH.watch; boot 10; GROWTH.unwatch; boot 200_000; print $allocations")
  end

  def test_a_collector_that_was_disabled_stays_so
    allocate = "Highball::HeapLayout.allocate_pages; print GC.stat(:heap_allocatable_pages), ' ', GC.disable"
    assert_equal "0 true", ruby("boot_until_heap_may_grow; GC.disable; #{allocate}")
    assert_equal "0 false", ruby("boot_until_heap_may_grow; #{allocate}")
  end

  def test_a_process_that_ends_meanwhile_ends_well
    assert_equal "", ruby("GROWTH.watch; boot 200_000")
  end

  private

  def ruby(script) = run_ruby("highball/heap_growth", PRELUDE + script)
end
