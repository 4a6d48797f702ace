# frozen_string_literal: true

require "minitest/autorun"
require "highball/heap"

class HeapTest < Minitest::Test
  Heap = Highball::Heap

  def test_figures_are_those_of_gc_stat
    GC.disable
    figures = Heap.figures
    stat = GC.stat
    assert_equal stat.values_at(:count, :major_gc_count, :time, :heap_allocated_pages),
                 figures.values_at(:gc_count, :major_gc_count, :gc_time_ms, :pages)
    assert_in_delta stat[:heap_live_slots], figures[:live_slots], 500
    assert_in_delta stat[:heap_free_slots], figures[:free_slots], 500
  ensure
    GC.enable
  end

  def test_every_slot_in_use_is_on_a_page_in_use
    GC.start
    figures = Heap.figures
    assert_operator figures[:live_slots], :<=, figures[:page_slots]
    # The smallest slots have 40 bytes, or 32 from Ruby 4 on.
    assert_operator figures[:page_slots], :<=, figures[:pages] * figures[:page_bytes] / 32
  end

  def test_empty_pages_are_left_out
    stat = { heap_allocated_pages: 4, heap_tomb_pages: 1, heap_available_slots: 1000 }
    assert_equal 750, Highball::Ruby31::HeapPages.page_slots(stat)
    assert_equal 0, Highball::Ruby31::HeapPages.page_slots(stat.transform_values { 0 })
  end

  def test_a_collector_that_counts_otherwise_tells_nothing
    assert_nil Heap.figures({ count: 3, time: 1 })
  end
end
