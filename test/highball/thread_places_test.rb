# frozen_string_literal: true

require "minitest/autorun"
require "active_record"
require "stringio"
require "highball/log"
require "highball/thread_places"

# How the pools of an application limit the threads of a worker.
class ThreadPlacesTest < Minitest::Test
  Places = Highball::ThreadPlaces

  # What the class asks of a ring.
  class FakeRing
    attr_reader :places, :most_threads, :kept_by

    def initialize(places, most, leaving: false)
      @places = places
      @most_threads = most
      @leaving = leaving
    end

    def keep_places(why) = @kept_by = why
    def add_place = @places += 1
    def take_place_back = @leaving.tap { @leaving = false }
  end

  def setup
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:", pool: 5)
    @log = StringIO.new
    @started = 0
  end

  def teardown = ActiveRecord::Base.remove_connection

  def test_two_connections_are_for_no_serving_thread
    places = places(1, 32)
    4.times { add(places) }
    assert_equal [3, Places::POOL, 2], [@ring.places, @ring.kept_by, @started]
    assert_equal 1, @log.string.scan("the worker gets no more threads").length, @log.string
    assert_includes @log.string, "database: 5, of which 2 "
  end

  def test_no_thread_comes_while_one_waits_for_the_pool
    pool = ActiveRecord::Base.connection_pool
    held = Array.new(5) { pool.checkout }
    waiting = Thread.new { pool.checkout(5).then { |connection| pool.checkin(connection) } }
    Thread.pass until pool.num_waiting_in_queue == 1
    places = places(2, 32)
    add(places)
    assert_equal [2, Places::POOL_WAIT, 0], [@ring.places, @ring.kept_by, @started]
    held.each { |connection| pool.checkin(connection) }
    waiting.join
    add(places)
    assert_equal [3, Places::NOTHING, 1], [@ring.places, @ring.kept_by, @started]
  end

  def test_the_range_is_the_limit
    places = places(1, 2)
    2.times { add(places) }
    assert_equal [2, 1], [@ring.places, @started]
  end

  def test_a_thread_that_was_to_end_stays
    add(places(2, 32, leaving: true))
    assert_equal [3, 0], [@ring.places, @started]
  end

  def test_a_system_without_threads
    places(2, 32).add { raise ThreadError, "can't create Thread" }
    assert_equal [2, Places::SYSTEM], [@ring.places, @ring.kept_by]
    assert_includes @log.string, "the system refuses another thread"
  end

  private

  def places(now, most, **options)
    @ring = FakeRing.new(now, most, **options)
    Places.new(@ring, Highball::Log.new(out: @log))
  end

  def add(places) = places.add { @started += 1 }
end
