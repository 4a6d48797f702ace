# frozen_string_literal: true

require "minitest/autorun"
require "highball/native"
require_relative "../support/forked"
require_relative "../support/process_facts"

# Memory of the stacks of fibers, which they give back at their end.
class FiberStackTest < Minitest::Test
  NATIVE = Highball::Extension.load && Highball::Native
  FIBERS = 300
  BYTES = RubyVM::DEFAULT_PARAMS.fetch(:fiber_machine_stack_size)

  def test_stacks_are_given_back
    skip "Ruby gives them back without help" unless RUBY_VERSION < "3.2"
    kept = own_kib { FIBERS.times.map { deep_fiber(gives_back: false) } }
    given = own_kib { FIBERS.times.map { deep_fiber(gives_back: true) } }
    assert_operator given, :<, kept / 2
  end

  def test_a_fiber_goes_on_after_it
    results = Array.new(20) do |number|
      Fiber.new do
        place = NATIVE.stack_place
        texts = deep(60) { "text #{number}" }
        given = NATIVE.give_back_stack(place, BYTES)
        again = deep(60) { "again #{number}" }
        GC.start
        [given, texts, again]
      end.resume
    end
    results.each_with_index do |(given, text, again), number|
      assert_operator given, :>, 100_000
      assert_equal ["text #{number}", "again #{number}"], [text, again]
    end
  end

  def test_it_does_nothing_for_a_caller_that_is_elsewhere
    place = NATIVE.stack_place
    Fiber.new { assert_equal 0, NATIVE.give_back_stack(place, BYTES) }.resume
    Thread.new { assert_equal 0, NATIVE.give_back_stack(place, BYTES) }.join
    assert_equal 0, beyond(place) { NATIVE.give_back_stack(place, BYTES) }
    [0, 1, 2**62, (2**64) - 1].each { |other| assert_equal 0, NATIVE.give_back_stack(other, BYTES) }
    # Half of these stacks, without what stays below the caller, is less than a page.
    [0, 1, 16_000].each { |size| assert_equal 0, NATIVE.give_back_stack(place, size) }
  end

  private

  # By blocks of methods in C, which take much of the stack.
  def deep(levels, &block) = levels.zero? ? yield : [levels].map { |level| deep(level - 1, &block) }.first

  # Further down than a fiber's stack from this place could be.
  def beyond(place, &block)
    place - NATIVE.stack_place > BYTES ? yield : [place].map { |from| beyond(from, &block) }.first
  end

  def deep_fiber(gives_back:)
    Fiber.new do
      place = NATIVE.stack_place
      deep(60) { Fiber.yield }
      NATIVE.give_back_stack(place, BYTES) if gives_back
    end
  end

  # How much private memory a process has gained when fibers that were open at the same time have ended.
  def own_kib
    Forked.number do
      before = own
      fibers = yield
      2.times { fibers.each(&:resume) }
      own - before
    end
  end

  def own = ProcessFacts.private_dirty_bytes([Process.pid]) / 1024
end
