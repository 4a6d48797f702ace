# frozen_string_literal: true

require "minitest/autorun"
require "highball/remedies"

class RemediesTest < Minitest::Test
  def test_a_missing_gem
    error = assert_raises(LoadError) { require "no_such_gem/at_all" }
    assert_match(/gem install no_such_gem\b/, Highball::Remedies.for(error))
    assert_match(/bundle install/, Highball::Remedies.for(error))
  end

  def test_a_missing_file_of_ones_own
    error = assert_raises(LoadError) { require "/no/such/file" }
    assert_match(%r{/no/such/file}, Highball::Remedies.for(error))
    refute_match(/gem install/, Highball::Remedies.for(error))
  end

  def test_the_cause_counts_where_the_error_itself_is_unknown
    error = assert_raises(RuntimeError) do
      File.read("/no/such/file")
    rescue SystemCallError
      raise "something went wrong"
    end
    assert_match(/path/, Highball::Remedies.for(error))
  end

  def test_messages_decide_where_classes_cannot
    assert_match(/SECRET_KEY_BASE/, Highball::Remedies.for(ArgumentError.new("Missing `secret_key_base`")))
    assert_match(/end in `run`/, Highball::Remedies.for(RuntimeError.new("missing run or map statement")))
    assert_match(/database\.yml/, Highball::Remedies.for(RuntimeError.new("Cannot load database configuration")))
  end

  def test_no_advice_is_better_than_a_wrong_one
    assert_nil Highball::Remedies.for(RuntimeError.new("no idea"))
    assert_nil Highball::Remedies.for(ArgumentError.new("wrong number of arguments"))
  end

  def test_every_rule_gives_advice
    Highball::Remedies::RULES.each do |rule|
      assert(rule.advice.respond_to?(:call) || rule.advice.match?(/\w+ .*\w/), rule.inspect)
      assert(rule.classes.any? || rule.pattern, rule.inspect)
    end
  end
end
