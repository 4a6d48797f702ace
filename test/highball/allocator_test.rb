# frozen_string_literal: true

require "json"
require "minitest/autorun"
require_relative "../support/run_ruby"

# What serves malloc, and where a forked process allocates. Each example is another process, as a mold is.
class AllocatorTest < Minitest::Test
  include RunRuby

  OURS = File.join(LIB, "highball/highball_jemalloc.so")
  THEIRS = Dir["/usr/lib/*/libjemalloc.so.2"].first
  PIECES = 150_000
  A_HOLE_EVERY = 30
  # Far more pieces than fit on a page, with holes between them. A child allocates as many pieces as there are holes.
  PRELUDE = <<~RUBY.freeze
    require "fiddle"
    Highball::Extension.load
    PIECES = Array.new(#{PIECES}) { Fiddle.malloc(100) } # (newer Rubies hold a short string in the object itself)
    PIECES.each_slice(#{A_HOLE_EVERY}) { |piece, *| Fiddle.free(piece) }

    # The private memory of a child that has done this, in KiB.
    def child
      read, write = IO.pipe
      pid = fork do
        GC.disable
        yield
        write.puts(File.read("/proc/self/smaps_rollup")[/^Private_Dirty:\\s+(\\d+)/, 1])
        write.flush
        exit!(0)
      end
      write.close
      Process.wait(pid)
      Integer(read.read)
    end

    def allocate = #{PIECES / A_HOLE_EVERY}.times { Fiddle.malloc(100) }
    def separate = Highball::Native.separate_heap
  RUBY

  def test_its_name_is_known
    assert_equal({ name: "jemalloc 5.3.1" }.to_s, described("jemalloc", OURS))
    assert_match(/jemalloc 5\.\d+\.\d+/, described("LD_PRELOAD is set", THEIRS)) if THEIRS
    assert_equal({ off: "allocator = system" }.to_s, described("allocator = system"))
    assert_equal({ off: "the library could not be preloaded" }.to_s, described("jemalloc", "", "x.so"))
  end

  def test_the_library_is_taken_out_of_the_environment_and_others_stay
    others = "Highball::Allocator.take_decision; p ENV['LD_PRELOAD']"
    env = { "HIGHBALL_ALLOCATOR" => "jemalloc", "LD_PRELOAD" => OURS }
    assert_equal "nil", allocator(others, env)
    libm = Dir["/lib/*/libm.so.6"].first
    assert_equal libm.inspect, allocator(others, env.merge("LD_PRELOAD" => "#{OURS} #{libm}"))
    assert_equal libm.inspect, allocator(others, "HIGHBALL_ALLOCATOR" => "LD_PRELOAD is set", "LD_PRELOAD" => libm)
  end

  def test_a_separate_heap_leaves_what_is_shared_alone
    [OURS, THEIRS].compact.each do |library|
      shared, separate = JSON.parse(allocator(<<~RUBY, "LD_PRELOAD" => library))
        print [child { allocate }, child { separate; allocate }]
      RUBY
      assert_operator separate, :<, shared / 2, library
    end
  end

  def test_threads_that_join_allocate_there_too
    alone, joined = JSON.parse(allocator(<<~'RUBY', "LD_PRELOAD" => OURS))
      print [child { separate; Thread.new { allocate }.join },
             child { separate; Thread.new { Highball::Native.join_heap; allocate }.join }]
    RUBY
    assert_operator joined, :<, alone / 2
  end

  def test_unused_memory_is_given_back
    [OURS, THEIRS, ""].compact.each do |library|
      before, after = JSON.parse(allocator(<<~RUBY, "LD_PRELOAD" => library))
        rss = -> { Integer(File.read("/proc/self/status")[/^VmRSS:\\s+(\\d+)/, 1]) }
        many = Array.new(200_000) { Fiddle.malloc(500) }
        many[0..-2].each { |piece| Fiddle.free(piece) } # (the last stays: glibc gives back what is free at the heap's end)
        before = rss.call
        Highball::Native.trim_malloc
        print [before, rss.call]
      RUBY
      assert_operator after, :<, before - (50 << 10), "KiB, #{library}"
    end
  end

  # Of an application that forks while its threads allocate.
  def test_a_fork_beside_threads_that_allocate_does_not_hang
    assert_equal "done", allocator(<<~RUBY, "LD_PRELOAD" => OURS)
      threads = Array.new(4) { Thread.new { loop { Fiddle.free(Fiddle.malloc(rand(10_000))) } } }
      50.times { Process.wait(fork { separate; allocate; exit!(0) }) }
      $stdout.syswrite("done")
      exit!(0)
    RUBY
  end

  private

  def described(decision, library = "", preloaded = library)
    script = "Highball::Allocator.take_decision; Highball::Extension.load; p Highball::Allocator.description"
    env = { "HIGHBALL_ALLOCATOR" => decision, "LD_PRELOAD" => library }
    allocator(preloaded == library ? script : "ENV['LD_PRELOAD'] = #{preloaded.inspect}; #{script}", env, "")
  end

  def allocator(script, env, prelude = PRELUDE) = run_ruby("highball/allocator", prelude + script, env: env)
end
