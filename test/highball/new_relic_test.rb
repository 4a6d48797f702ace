# frozen_string_literal: true

require "minitest/autorun"
require "highball/new_relic"

class NewRelicTest < Minitest::Test
  NAMES = %w[NEW_RELIC_DISPATCHER newrelic_dispatcher].freeze

  def teardown
    NAMES.each { |name| ENV.delete(name) }
    Gem.loaded_specs.delete("newrelic_rpm")
  end

  def test_the_agent_learns_that_the_server_forks_while_the_application_is_loaded
    with_the_gem
    assert_equal ["puma", nil], seen
    assert_empty ENV.keys & NAMES
    assert_raises(IOError) { Highball::NewRelic.expect_forks { raise IOError } }
    assert_empty ENV.keys & NAMES
  end

  def test_what_the_user_has_set_counts
    with_the_gem
    ENV["NEW_RELIC_DISPATCHER"] = "unicorn"
    assert_equal ["unicorn", nil], seen
    assert_equal "unicorn", ENV.delete("NEW_RELIC_DISPATCHER")
    ENV["newrelic_dispatcher"] = "passenger"
    assert_equal [nil, "passenger"], seen
  end

  def test_applications_without_the_gem_see_nothing
    assert_equal [nil, nil], seen
  end

  private

  def with_the_gem = Gem.loaded_specs["newrelic_rpm"] = Gem::Specification.new("newrelic_rpm", "10.5.0")

  def seen = Highball::NewRelic.expect_forks { ENV.values_at(*NAMES) }
end
