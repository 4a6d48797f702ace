# frozen_string_literal: true

require "minitest/autorun"
require_relative "../../bench/hello"

class BenchProcessTreeTest < Minitest::Test
  BURN = "nil until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) > 0.3"

  def test_cpu_time_of_living_descendants_counts
    with_child("#{BURN}; puts %(burnt); $stdout.flush; gets") do |tree, process|
      process.gets

      assert_operator tree.cpu_time.since(Bench::CpuTime.new(0, 0, {})).sum, :>, 300_000
      assert_equal 2, tree.pids.size
    end
  end

  def test_cpu_time_of_a_child_that_ended_meanwhile_counts
    with_child("puts %(ready); $stdout.flush; gets; #{BURN}") do |tree, process|
      process.gets
      before = tree.cpu_time
      process.puts
      process.gets

      assert_operator tree.cpu_time.since(before).sum, :>, 150_000
    end
  end

  def test_memory_that_was_written_is_private_dirty
    with_process("kept = %(x) * 32 * 1024 * 1024; puts kept.size; $stdout.flush; gets") do |tree, process|
      process.gets

      assert_operator tree.memory.private_dirty, :>, 32
      assert_equal 0, tree.memory.ring
    end
  end

  # 4 of the ring's 8 MiB are written by a process, and again by its child.
  RING = <<~RUBY
    require "fiddle"
    libc = Fiddle.dlopen(nil)
    int, pointer, size = Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T
    fd = Fiddle::Function.new(libc["memfd_create"], [pointer, int], int).call("highball-ring", 0)
    File.for_fd(fd, "r+", autoclose: false).truncate(8 << 20)
    mmap = Fiddle::Function.new(libc["mmap"], [pointer, size, int, int, int, size], pointer)
    ring = mmap.call(nil, 8 << 20, 3, 1, fd, 0) # readable and writable, shared
    ring[0, 4 << 20] = "x" * (4 << 20)
    fork { ring[0, 4 << 20] = "y" * (4 << 20); puts; $stdout.flush; gets }
    gets
  RUBY

  def test_resident_pages_of_a_ring_are_counted_once_and_apart
    with_process(RING) do |tree, process|
      process.gets

      assert_equal 2, tree.pids.size
      assert_in_delta 4.0, tree.memory.ring, 0.01
    end
  end

  def test_a_process_that_ended_is_told
    pid = Process.spawn("true")
    Process.wait(pid)

    assert_raises(Bench::Failure) { Bench::ProcessTree.new(pid).cpu_time }
  end

  private

  # All processes end with their standard input.
  def with_process(script)
    IO.popen(["ruby", "--disable-gems", "-e", script], "r+") do |process|
      yield Bench::ProcessTree.new(process.pid), process
    end
  end

  # A process whose only task is to wait for its child.
  def with_child(script, &)
    child = "system(%(ruby), '--disable-gems', '-e', %q(#{script}))"
    with_process("#{child}; puts %(ended); $stdout.flush; gets", &)
  end
end
