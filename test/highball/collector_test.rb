# frozen_string_literal: true

require "minitest/autorun"
require_relative "../support/run_ruby"

# Each example is another process, with a heap that is large enough.
class CollectorTest < Minitest::Test
  include RunRuby

  PRELUDE = <<~RUBY
    KEPT = Array.new(200_000) { Object.new }
    GC.start
    ENV["HIGHBALL_COLLECTOR"] = "60"
    Highball::Collector.take_decision
    COLLECTOR = Highball::Collector.of_worker
    # A request, until Ruby has collected unasked; and one more, which is known by how much it allocates.
    def until_collected
      count = GC.count
      1000.times { Object.new } while GC.count == count
      COLLECTOR.after_request { false }
    end
    def collections = GC.count.then { |before| yield; GC.count - before }
    def free = GC.stat(:heap_free_slots)
    3.times { until_collected }
    USUAL = COLLECTOR.instance_variable_get(:@usual)
    def use(share) = (USUAL * share).to_i.times { Object.new }
  RUBY

  def test_an_idle_worker_collects_when_most_free_slots_are_used
    assert_equal [0, 0, 1], ruby(<<~RUBY)
      GC.start(full_mark: false)
      COLLECTOR.after_request { false }
      few = collections { use(0.5); COLLECTOR.after_request { true } }
      busy = collections { use(0.3); COLLECTOR.after_request { false } }
      p [few, busy, collections { COLLECTOR.after_request { true } }]
    RUBY
  end

  def test_threads_that_end_requests_at_the_same_time
    assert_equal :ended, ruby(<<~RUBY)
      class << GC
        alias real count
        def count = real.tap { Thread.pass } # another thread looks between two steps
      end
      threads = Array.new(4) { Thread.new { 200.times { use(0.02); COLLECTOR.after_request { false } } } }
      threads.each(&:join)
      p :ended
    RUBY
  end

  def test_an_application_that_has_disabled_the_collector_chooses_itself
    assert_equal [0, true], ruby(<<~RUBY)
      GC.disable
      p [collections { use(2); COLLECTOR.after_request { true } }, GC.disable]
    RUBY
  end

  def test_nothing_is_collected_in_a_pause
    assert_equal [0, true, false], ruby(<<~RUBY)
      Highball::Collector.pause
      collected = collections { use(2) }
      paused = Highball::Collector.paused?
      Highball::Collector.go_on
      p [collected, paused, GC.enable]
    RUBY
  end

  def test_an_application_may_disable_the_collector_before_a_pause_and_in_its_hooks
    assert_equal [true, [false, true], true], ruby(<<~RUBY)
      collector = Highball::Collector
      GC.disable
      collector.pause
      collector.go_on
      before = GC.enable
      collector.pause
      collector.let_choose { nil }
      paused = [collector.let_choose { GC.disable }, GC.disable]
      collector.go_on
      p [before, paused, GC.enable]
    RUBY
  end

  def test_a_complete_collection_is_brought_forward
    assert_equal :force, ruby(<<~RUBY)
      class << GC
        alias real stat
        def stat(key = nil) = { old_objects: 95, old_objects_limit: 100 }.fetch(key) { real(*key) }
      end
      use(0.9)
      COLLECTOR.after_request { true }
      p GC.latest_gc_info(:major_by)
    RUBY
  end

  def test_it_is_off_with_a_reason_and_for_small_heaps
    assert_equal [{ off: "gc = off" }, nil, nil], ruby(<<~RUBY, prelude: "")
      ENV["HIGHBALL_COLLECTOR"] = "gc = off"
      Highball::Collector.take_decision
      p [Highball::Collector.description, Highball::Collector.room, Highball::Collector.of_worker]
    RUBY
    assert_equal [nil, nil, false], ruby(<<~RUBY, prelude: "")
      ENV["HIGHBALL_COLLECTOR"] = "on"
      Highball::Collector.take_decision
      p [Highball::Collector.room, Highball::Collector.of_worker, ENV.key?("HIGHBALL_COLLECTOR")]
    RUBY
  end

  private

  def ruby(code, prelude: PRELUDE)
    eval(run_ruby("highball/collector", prelude + code)) # rubocop:disable Security/Eval -- this test's own output
  end
end
