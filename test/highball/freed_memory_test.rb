# frozen_string_literal: true

require "minitest/autorun"
require "highball/freed_memory"
require "highball/own_memory"

# When a worker gives memory back.
class FreedMemoryTest < Minitest::Test
  # In place of a Highball::Server.
  Serving = Struct.new(:tickets, :busy, :streams) do
    def busy? = busy
  end
  KIB = 1024
  FREED = Highball::FreedMemory

  def setup
    Highball::Extension.load
    @server = Serving.new([0, 0], false, 0)
    @freed = FREED.new(@server)
    @collections = collections = []
    @freed.define_singleton_method(:collect) { super().tap { collections << @seen } }
  end

  def test_it_looks_seldom_while_nothing_is_served
    3.times { |second| refute @freed.look(second) }
    assert_equal FREED::IDLE_LOOK_EVERY, @freed.pause
  end

  def test_while_requests_are_served_it_gives_back_at_each_look
    20.times do |second|
      serve
      assert @freed.look(second), "second #{second}"
      assert_equal FREED::LOOK_EVERY, @freed.pause
    end
    assert_empty @collections
  end

  def test_after_the_last_request_it_collects_once
    serve
    assert @freed.look(0), "it has just served"
    4.times { |number| refute @freed.look(1 + number), "it waits for more" }
    assert_empty @collections
    assert @freed.look(5)
    assert_equal 1, @collections.size
    assert_equal FREED::IDLE_LOOK_EVERY, @freed.pause
    5.times { |number| refute @freed.look(6 + number), "nothing was served since" }
    serve
    assert @freed.look(20)
    assert @freed.look(25)
    assert_equal 2, @collections.size
  end

  def test_a_request_that_takes_long_is_no_pause
    serve
    @server.busy = true
    assert @freed.look(0)
    10.times { |number| refute @freed.look(1 + number) }
    @server.busy = false
    assert @freed.look(11)
    assert_equal 1, @collections.size
  end

  def test_it_collects_completely_after_many_streams_alone
    complete = -> { GC.stat(:major_gc_count) }
    before = complete.call
    [0, FREED::MANY_STREAMS, FREED::MANY_STREAMS - 1].each_with_index do |streams, number|
      serve
      @server.streams = streams
      @freed.look(10 * number)
      @server.streams = 0
      assert @freed.look((10 * number) + 5)
      assert_equal before + [0, 1, 1][number], complete.call, "after #{streams} streams"
    end
  end

  # (Of a CPU's. The thread waits for the GVL afterwards, which may take much longer.)
  def test_giving_back_takes_a_small_part_of_the_time_only
    used = 0
    @freed.define_singleton_method(:cpu_time) { used += 0.02 }
    given_back = (0..45).select do |second|
      serve
      @freed.look(second)
    end
    assert_equal [0, 20, 40], given_back
  end

  def test_an_application_that_has_disabled_the_collector_is_left_alone
    GC.disable
    before = GC.count
    serve
    [0, 5, 6].each { |second| @freed.look(second) }
    assert_equal [1, before], [@collections.size, GC.count]
    assert GC.enable, "it is still disabled"
  ensure
    GC.enable
  end

  def test_what_requests_have_dropped_is_given_back
    skip "another malloc gives back unasked" if ENV["LD_PRELOAD"]
    serve
    @freed.look(0)
    GC.disable
    # (Ruby 3.3 keeps up to 640 bytes in the slots of the heap.)
    20_000.times { |number| "#{number} " * 200 }
    GC.enable
    before = own_kib
    assert @freed.look(5)
    assert_operator own_kib, :<, before - (10 * KIB), "KiB"
  end

  private

  def serve = @server.tickets = @server.tickets.map(&:succ)

  def own_kib
    figures = Highball::OwnMemory.figures or skip "the kernel does not report it"
    figures.fetch(:private_dirty_kib)
  end
end
