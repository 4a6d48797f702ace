# frozen_string_literal: true

require "minitest/autorun"
require "highball"

class HooksTest < Minitest::Test
  def test_blocks_run_in_the_order_given_with_their_arguments
    hooks = Highball::Hooks.new
    ran = []
    hooks.add(:after_fork, ->(number) { ran << [1, number] })
    hooks.add(:after_fork, ->(number) { ran << [2, number] })
    hooks.run(:before_fork)
    hooks.run(:after_fork, 7)
    assert_equal [[1, 7], [2, 7]], ran
  end

  def test_a_hook_needs_a_block
    assert_raises(ArgumentError) { Highball.before_fork }
  end

  def test_blocks_that_take_no_arguments_are_welcome
    hooks = Highball::Hooks.new
    ran = 0
    hooks.add(:after_fork, proc { ran += 1 })
    hooks.run(:after_fork, 1)
    assert_equal 1, ran
  end
end
