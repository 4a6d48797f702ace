# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "rbconfig"
require "highball/heap_growth"

# Where the collector's notes on the pages of a heap lie that has grown while an application booted. Each example is
# another process.
class HeapGrowthTest < Minitest::Test
  PRELUDE = <<~RUBY
    require "fiddle"
    require "highball/heap_growth"
    Highball::Extension.load
    GROWTH = Highball::HeapGrowth

    KEPT = []

    # Objects that stay, with memory of malloc's, among some that do not stay.
    def boot(count) = count.times { KEPT << Object.new << ("x" * rand(100..900)) << ("y" * rand(100..900))[0, 4] }

    # Pages of the system per page of the heap that hold notes on it. Each page of the heap begins with their address.
    def system_pages_per_page
      heap_pages = KEPT.map { |object| Fiddle.dlwrap(object) & -Highball::Heap::PAGE_BYTES }.uniq
      heap_pages.map { |page| Fiddle::Pointer.new(page).ptr.to_i / 4096 }.uniq.size / heap_pages.size.to_f
    end

    def allocatable = Highball::Heap.slot_sizes.each_index.sum { |size| Highball::Heap.allocatable_pages(size) }
  RUBY
  def setup
    skip "this Ruby does not say what it may allocate" if RUBY_VERSION >= "3.4"
  end

  def test_notes_on_pages_that_were_allocated_in_one_go_lie_side_by_side
    alone = Float(ruby("srand 1; boot 300_000; print system_pages_per_page"))
    watched = Float(ruby("srand 1; GROWTH.watch; boot 300_000; GROWTH.unwatch; print system_pages_per_page"))
    assert_operator watched, :<, alone * 0.7
  end

  def test_a_small_heap_is_left_small
    script = "boot 10_000; 3.times { GC.start }; print GC.stat(:heap_allocated_pages)"
    assert_in_delta Integer(ruby("srand 1; #{script}")), Integer(ruby("srand 1; GROWTH.watch; #{script}")), 20
  end

  def test_it_ends
    assert_equal "0", ruby(<<~RUBY)
      GROWTH.watch
      boot 10
      GROWTH.unwatch
      called = 0
      Highball::HeapLayout.define_singleton_method(:allocate_pages) { called += 1 }
      boot 200_000
      print called
    RUBY
  end

  def test_a_collector_that_was_disabled_stays_so
    assert_equal "true", ruby("GC.disable; Highball::HeapLayout.allocate_pages; print GC.disable")
    assert_equal "false", ruby("Highball::HeapLayout.allocate_pages; print GC.disable")
  end

  def test_a_process_that_ends_meanwhile_ends_well
    assert_equal "", ruby("GROWTH.watch; boot 200_000")
  end

  private

  def ruby(script)
    library = File.expand_path("../../lib", __dir__)
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{library}", "-e", PRELUDE + script)
    assert_predicate status, :success?, output
    output.chomp
  end
end
