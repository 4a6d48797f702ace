# frozen_string_literal: true

require "minitest/autorun"
require "highball/journey"

class JourneyTest < Minitest::Test
  # Records the messages.
  class Listener
    attr_reader :heard

    def initialize = @heard = []
    def say(type, **fields) = @heard << [type, fields]
  end

  def setup
    @listener = Listener.new
    @journey = Highball::Journey.new(@listener)
  end

  def test_a_step_is_told_before_it_is_taken
    value = @journey.step(:load_app) do
      assert_equal [[:step, { step: :load_app }]], @listener.heard
      42
    end
    assert_equal 42, value
  end

  def test_a_failed_step_stays_the_current_one
    assert_equal :start_ruby, @journey.current
    assert_raises(KeyError) { @journey.step(:load_bundler) { raise KeyError } }
    assert_equal :load_bundler, @journey.current
  end

  def test_only_named_steps_exist
    assert_raises(ArgumentError) { @journey.step(:dance) { flunk } }
  end
end
