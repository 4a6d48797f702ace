# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "tmpdir"
require "highball/compiler"
require_relative "../support/run_ruby"

# Each example is another process, as a mold is.
class CompilerTest < Minitest::Test
  include RunRuby

  HAS_YJIT = defined?(RubyVM::YJIT) ? true : false
  IS_HELD = HAS_YJIT && RUBY_VERSION.start_with?("3.1.")

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

  def test_ruby_31s_is_held_until_the_application_is_loaded
    skip "this Ruby is not 3.1 with YJIT" unless IS_HELD
    booted, held, declined, compiled = held(Highball::Ruby31::Compiler::NEVER)
    assert_equal [true, false], booted
    assert_equal [false, 0], held
    assert_equal({ off: "the application has config.yjit = false" }, declined)
    assert compiled.shift
    assert_operator compiled.shift, :>, 0
  end

  def test_it_is_not_held_where_its_options_are_not_found
    skip "this Ruby is not 3.1 with YJIT" unless IS_HELD
    assert_equal [false, true], held(1000).first
  end

  # Ruby 3.1 writes to all of it.
  def test_an_application_without_rails_has_less_memory_for_code
    Dir.mktmpdir do |folder|
      Dir.chdir(folder) do
        assert_equal 16, Highball::Compiler.code_mib
        FileUtils.mkdir_p("config")
        FileUtils.touch("config/application.rb")
        assert_equal 32, Highball::Compiler.code_mib
      end
    end
  end

  private

  # In a Ruby that was started with this number of calls, an array:
  # 0. whether it could be held, and whether it was enabled then
  # 1. whether it is enabled, and the bytes of code, after many calls
  # 2. the description if Rails declines
  # 3. as 1, when it is released and after many more calls
  def held(calls)
    script = <<~'RUBY'
      Bytes = -> { RubyVM::YJIT.runtime_stats[:inline_code_size] }
      def self.work = 10_000.times { twice(1) }
      def self.twice(number) = number + number
      at_start = Bytes.()
      results = [[Highball::Compiler.hold, RubyVM::YJIT.enabled?]]
      ENV["HIGHBALL_COMPILER"] = "held"
      Highball::Compiler.take_decision
      work
      results << [RubyVM::YJIT.enabled?, Bytes.() - at_start]
      module Rails; def self.application = self; def self.config = self; def self.yjit = false; end
      Highball::Compiler.enable
      results << Highball::Compiler.description
      Object.send(:remove_const, :Rails)
      ENV["HIGHBALL_COMPILER"] = "held"
      Highball::Compiler.take_decision
      Highball::Compiler.enable
      work
      p results << [RubyVM::YJIT.enabled?, Bytes.() - at_start]
    RUBY
    options = ["--yjit", "--yjit-exec-mem-size=#{Highball::Compiler.code_mib}", "--yjit-call-threshold=#{calls}"]
    eval(run_ruby("highball/compiler", script, options: options)) # rubocop:disable Security/Eval -- this test's own output
  end

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
