# frozen_string_literal: true

require "fiddle"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "highball/native"

# The private memory of a forked process whose parent's heap is full of holes.
class MallocHolesTest < Minitest::Test
  # In malloc's chunks: far more than fit on a hole's page.
  PIECES = 150_000
  A_HOLE_EVERY = 30
  BYTES = 100

  def self.prepare
    return if @prepared

    @prepared = true
    Highball::Extension.load
  end

  def setup
    self.class.prepare
    pieces = Array.new(PIECES) { Fiddle.malloc(BYTES) } # (newer Rubies hold a short string in the object itself)
    dropped, @kept = pieces.partition.with_index { |_, number| (number % A_HOLE_EVERY).zero? }
    dropped.each { |piece| Fiddle.free(piece) }
  end

  def teardown = @kept.each { |piece| Fiddle.free(piece) }

  def test_what_is_forked_leaves_filled_holes_alone
    with_holes = taken_by_a_child
    Highball::Native.fill_malloc_holes(0)
    filled = taken_by_a_child
    Highball::Native.free_malloc_holes
    assert_operator filled, :<, with_holes / 2, "#{filled} KiB with holes filled, #{with_holes} without"
  end

  def test_holes_that_are_given_back_are_there_again
    Highball::Native.fill_malloc_holes(2)
    Highball::Native.free_malloc_holes
    with_holes = taken_by_a_child
    Highball::Native.fill_malloc_holes(2)
    assert_operator taken_by_a_child, :<, with_holes / 2
    Highball::Native.free_malloc_holes
  end

  def test_a_child_gives_back_what_its_parent_has_filled
    Highball::Native.fill_malloc_holes(0)
    pid = fork do
      Highball::Native.free_malloc_holes
      Highball::Native.fill_malloc_holes(1)
      Highball::Native.free_malloc_holes
      exit!(0)
    end
    assert_predicate Process.wait2(pid).last, :success?
    Highball::Native.free_malloc_holes
  end

  def test_another_malloc_is_left_alone
    jemalloc = Dir["/usr/lib/*/libjemalloc.so.2"].first or skip "libjemalloc2 is not installed"
    script = <<~RUBY
      require "fiddle"
      require "highball/native"
      Highball::Extension.load
      pieces = Array.new(#{PIECES}) { Fiddle.malloc(#{BYTES}) }
      pieces.each_slice(2) { |piece, _| Fiddle.free(piece) }
      rss = -> { Integer(File.read("/proc/self/status")[/^VmRSS:\\s+(\\d+)/, 1]) }
      before = rss.call
      Highball::Native.fill_malloc_holes(2)
      puts rss.call - before
    RUBY
    grown, status = Open3.capture2({ "LD_PRELOAD" => jemalloc }, RbConfig.ruby, "-Ilib", "-e", script)
    assert_predicate status, :success?
    assert_operator Integer(grown), :<, 4096, "KiB"
  end

  private

  # The private memory, in KiB, of a child that allocates as many pieces as there are holes.
  def taken_by_a_child
    reader, writer = IO.pipe
    pid = fork do
      GC.disable
      (PIECES / A_HOLE_EVERY).times { Fiddle.malloc(BYTES) }
      writer.puts(private_dirty)
      writer.flush
      exit!(0)
    end
    writer.close
    Integer(reader.read)
  ensure
    Process.wait(pid)
    reader.close
  end

  def private_dirty = Integer(File.read("/proc/self/smaps_rollup")[/^Private_Dirty:\s+(\d+)/, 1])
end
