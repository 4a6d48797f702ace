# frozen_string_literal: true

require "minitest/autorun"
require "highball/compiler"
require_relative "../support/run_ruby"

# Each example is another process, as a mold is.
class CompilerTest < Minitest::Test
  include RunRuby

  HAS_YJIT = defined?(RubyVM::YJIT) ? true : false

  def test_what_is_decided_against_has_its_reason
    assert_equal({ off: "jit = off" }, description("jit = off")) unless enabled_from_outside?
  end

  def test_a_ruby_without_it_says_so
    skip "this Ruby has YJIT" if HAS_YJIT
    assert_equal({ off: "this Ruby has none", is_missing: true }, description("on"))
  end

  def test_it_is_enabled_when_the_application_is_loaded
    skip "this Ruby cannot enable YJIT later" unless HAS_YJIT && RubyVM::YJIT.respond_to?(:enable)
    assert_equal({ name: "YJIT" }, description("on"))
  end

  def test_rails_may_decline_it
    skip "this Ruby cannot enable YJIT later" unless HAS_YJIT && RubyVM::YJIT.respond_to?(:enable)
    rails = "module Rails; def self.application = self; def self.config = self; def self.yjit = false; end"
    assert_equal({ off: "the application has config.yjit = false" }, description("on", rails))
  end

  private

  def enabled_from_outside? = HAS_YJIT && RubyVM::YJIT.enabled?

  def description(decision, prelude = "")
    text = run_ruby("highball/compiler", <<~RUBY)
      #{prelude}
      ENV["HIGHBALL_COMPILER"] = #{decision.inspect}
      Highball::Compiler.take_decision
      Highball::Compiler.enable
      p [ENV.key?("HIGHBALL_COMPILER"), Highball::Compiler.description]
    RUBY
    is_left, description = eval(text) # rubocop:disable Security/Eval -- this test's own output
    refute is_left
    description
  end
end
