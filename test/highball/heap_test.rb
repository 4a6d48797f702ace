# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "rbconfig"
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
    assert_equal 750, Heap.page_slots_of_one_size(stat)
    assert_equal 0, Heap.page_slots_of_one_size(stat.transform_values { 0 })
  end

  def test_a_heap_gets_the_room_that_ruby_gives
    assert_in_delta 0.4, free_share({}), 0.05
    assert_in_delta 0.5, free_share({ Heap::ROOM_BY => "0.5" }), 0.05
    assert_in_delta 0.4, free_share({ Heap::ROOM_BY => "much" }), 0.05
  end

  def test_a_heap_that_has_room_is_left_as_it_is
    assert left_as_it_is?({ Heap::ROOM_BY => "0" }, objects: 300_000)
  end

  def test_a_small_heap_is_left_small
    assert left_as_it_is?({ Heap::ROOM_BY => "0.6" }, objects: 0)
    refute left_as_it_is?({ Heap::ROOM_BY => "0.6" }, objects: 300_000)
  end

  def test_a_collector_that_was_disabled_stays_so
    assert_equal "true", ruby({}, "GC.disable; Highball::Heap.make_room; print GC.disable")
  end

  def test_a_collector_that_counts_otherwise_tells_nothing
    assert_nil Heap.figures({ count: 3, time: 1 })
  end

  private

  # A heap with that number of objects that stay.
  def left_as_it_is?(env, objects:)
    ruby(env, <<~RUBY) == "true"
      kept = Array.new(#{objects}) { Object.new }
      4.times { GC.start }
      before = GC.count
      Highball::Heap.make_room
      print GC.count == before
    RUBY
  end

  # Of a heap that is full of objects that stay.
  def free_share(env)
    Float(ruby(env, <<~RUBY))
      kept = Array.new(300_000) { Object.new }
      4.times { GC.start }
      Highball::Heap.make_room
      stat = GC.stat
      print 1 - (stat[:heap_live_slots].to_f / stat[:heap_available_slots])
    RUBY
  end

  def ruby(env, script)
    library = File.expand_path("../../lib/highball/heap.rb", __dir__)
    output, status = Open3.capture2e(env, RbConfig.ruby, "-r#{library}", "-e", script)
    assert_predicate status, :success?, output
    output
  end
end
