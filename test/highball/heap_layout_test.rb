# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "tmpdir"
require "highball/heap_layout"
require_relative "../support/run_ruby"

# Where objects lie before a fork. Each example is another process, since it arranges its whole heap.
class HeapLayoutTest < Minitest::Test
  include RunRuby

  LAYOUT = Highball::HeapLayout
  # What a mold has in production.
  PRODUCTION = { LAYOUT::LEAST_BY => "0.05" }.freeze
  # A heap of objects that stay, with holes between them, and what the examples ask.
  PRELUDE = <<~RUBY
    Highball::Extension.load
    KEPT = []

    def fill(count)
      count.times { KEPT << Object.new << Object.new }
      KEPT.each_index { |index| KEPT[index] = nil if index.odd? }
      # Pages that Ruby may allocate are room already.
      KEPT << Object.new while GC.respond_to?(:stat_heap) && GC.stat_heap(0, :heap_allocatable_pages).positive?
    end

    def arrange(**options) = Highball::HeapLayout.arrange(**options)

    # The share of slots that are free, of those with 40 bytes where there are several sizes.
    def free_share
      return 1 - GC.stat.then { |stat| stat[:heap_live_slots].to_f / stat[:heap_available_slots] } unless GC.respond_to?(:stat_heap)

      heap = GC.stat_heap(0)
      live = heap[:total_allocated_objects] - heap[:total_freed_objects]
      slots = heap[:heap_eden_slots] * (heap[:heap_eden_pages] + heap[:heap_allocatable_pages]) / heap[:heap_eden_pages]
      1 - live.to_f / slots
    end

    # MiB of Ruby's heap and of malloc's that a fork has for itself when it has done this.
    def own_memory_of_a_fork
      read, write = IO.pipe
      Process.wait(fork { yield; write.puts File.read("/proc/self/smaps_rollup")[/^Private_Dirty: *(\\d+)/, 1] })
      write.close
      Integer(read.read) / 1024.0
    end
  RUBY

  HELD = LAYOUT::HELD_BY_REQUESTS

  def test_there_is_room_of_a_certain_share
    assert_in_delta LAYOUT::ROOM, arranged_share, 0.03
    assert_in_delta 0.05 + HELD, arranged_share("reforked: true"), 0.03
  end

  def test_there_is_more_where_ruby_regards_more_as_too_little
    assert_in_delta 0.3 + HELD, arranged_share(env: { LAYOUT::LEAST_BY => "0.3" }), 0.03
    ["much", nil].each do |least|
      assert_in_delta 0.2 + HELD, arranged_share("reforked: true", env: { LAYOUT::LEAST_BY => least }), 0.03
    end
  end

  def test_a_user_chooses_the_share
    assert_in_delta 0.5, arranged_share("reforked: true", env: PRODUCTION.merge(LAYOUT::ROOM_BY => "0.5")), 0.03
    assert_in_delta LAYOUT::ROOM, arranged_share(env: PRODUCTION.merge(LAYOUT::ROOM_BY => "much")), 0.03
  end

  def test_a_mold_that_was_forked_from_a_mold_drops_its_fillers
    live = ruby(<<~RUBY).split.map { |word| Float(word) }
      fill 200_000
      3.times do
        arrange
        print GC.stat(:heap_live_slots), " "
      end
    RUBY
    assert_operator live[2], :<=, live[0] * 1.05, live.inspect
  end

  def test_what_requests_make_lies_side_by_side
    scattered, arranged = ["4.times { GC.start }", "arrange"].map do |how|
      Float(ruby(<<~RUBY))
        fill 300_000
        #{how}
        GC.disable
        print own_memory_of_a_fork { Array.new(50_000) { Object.new } }
      RUBY
    end
    assert_operator arranged, :<, scattered - 1, "MiB, of which 2 are objects"
  end

  def test_minor_collections_find_enough
    collections, complete = ruby(<<~RUBY).split.map { |word| Integer(word) }
      fill 200_000
      arrange reforked: true
      before = GC.stat
      400.times { Array.new(5_000) { Object.new } }
      print GC.count - before[:count], " ", GC.stat(:major_gc_count) - before[:major_gc_count]
    RUBY
    assert_operator collections, :>, 5
    assert_equal 0, complete
  end

  def test_a_small_heap_is_left_small
    pages = ruby("before = GC.stat(:heap_allocated_pages); arrange; print GC.stat(:heap_allocated_pages) - before")
    assert_operator Integer(pages), :<, 60
    assert_equal "nil", ruby("arrange; p Highball::HeapLayout.instance_variable_get(:@fillers)")
  end

  def test_a_collector_that_was_disabled_stays_so
    assert_equal "true", ruby("GC.disable; arrange; print GC.disable")
    assert_equal "false", ruby("arrange; print GC.disable")
  end

  def test_programs_of_the_application_do_not_get_what_highball_has_chosen
    assert_equal "nil", ruby(<<~RUBY, env: PRODUCTION.merge("HIGHBALL_LEAST_FREE_SLOTS" => "chosen"))
      Highball::HeapLayout.forget_least
      p ENV.values_at("#{LAYOUT::LEAST_BY}", "HIGHBALL_LEAST_FREE_SLOTS").compact.first
    RUBY
    assert_equal "0.05", ruby("Highball::HeapLayout.forget_least; print ENV['#{LAYOUT::LEAST_BY}']")
  end

  def test_a_large_application_begins_with_many_slots
    skip "this Ruby has slots of several sizes" if Highball::Heap.several_sizes?
    slots = "GC.stat(:heap_available_slots)"
    pages = Highball::Ruby31::HeapPages
    Dir.mktmpdir do |folder|
      begin_large = "Highball::HeapLayout.begin_large(#{folder.dump}); print"
      without = Integer(ruby("#{begin_large} #{slots}"))
      assert_in_delta pages::LARGE, without, pages::LARGE * 0.1
      assert_equal "true", ruby("GC.disable; #{begin_large} GC.disable")
      FileUtils.mkdir_p(File.join(folder, "app/models"))
      100.times { |number| File.write(File.join(folder, "app/models/m#{number}.rb"), "") }
      assert_in_delta without + (100 * pages::OF_FILE), Integer(ruby("#{begin_large} #{slots}")), pages::LARGE * 0.1
      1000.times { |number| File.write(File.join(folder, "app/models/n#{number}.rb"), "") }
      assert_in_delta pages::MOST, Integer(ruby("#{begin_large} #{slots}")), pages::LARGE * 0.1
    end
  end

  private

  # The share of free slots of a heap with 200,000 objects that stay.
  def arranged_share(arguments = "", env: PRODUCTION)
    Float(ruby("fill 200_000; arrange #{arguments}; print free_share", env: env))
  end

  def ruby(script, env: PRODUCTION) = run_ruby("highball/heap_layout", PRELUDE + script, env: env)
end
