# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# In other processes, as they change `require`.
class BootRequiresTest < Minitest::Test
  LIB = File.expand_path("../../lib", __dir__)
  SHOP = File.expand_path("../../examples/shop", __dir__)
  HEAD = "require 'highball/boot_requires'; include Highball\n"

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    write("one.rb", "ONE = __FILE__\n")
    write("broken.rb", "require 'is_missing'\n")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_files_are_loaded_once_and_as_by_ruby
    assert_equal [true, false, "#{@folder}/one.rb", true, true], run_ruby(<<~RUBY)
      during = BootRequires.during { [require("one"), require("one.rb"), ONE] }
      later = [$LOADED_FEATURES.last == ONE, require("one") == false]
      during + later
    RUBY
  end

  def test_it_is_gone_after_the_boot
    assert_equal [true, true, true, []], run_ruby(<<~RUBY)
      before = Kernel.instance_method(:require)
      inside = BootRequires.during { Kernel.instance_method(:require) != before }
      after = Kernel.instance_method(:require).source_location == before.source_location
      BootRequires.during { require "one" }
      [inside, after, Object.new.send(:require, "one") == false, Kernel.public_instance_methods.grep(/highball|require/)]
    RUBY
  end

  # As Zeitwerk does.
  def test_another_library_that_changes_require_keeps_it
    assert_equal [["one"], true, %w[one set missing], "missing"], run_ruby(<<~RUBY)
      $seen = []
      BootRequires.during do
        module Kernel
          alias_method :others_require, :require
          def require(path)
            $seen << path
            others_require(path)
          end
          private :require
        end
        require "one"
      end
      [$seen.dup, require("set") || true, $seen, begin; require "missing"; rescue LoadError => e; e.path; end]
    RUBY
  end

  def test_errors_are_rubys
    %w[missing broken ./missing /nowhere/missing].each do |feature|
      plain, indexed = ["1.then", "BootRequires.during"].map do |during|
        run_ruby("#{during} { require #{feature.dump} }", "rescue LoadError => e; [e.message, e.path]")
      end
      assert_equal plain, indexed, feature
    end
    write("raises.rb", "raise LoadError, 'mine'\n")
    raised = run_ruby("BootRequires.during { require 'raises' }", "rescue LoadError => e; [e.message, e.path]")
    assert_equal ["mine", nil], raised
  end

  # The warning names the caller of `require`, not Highball.
  def test_warnings_have_the_place_that_they_are_about
    write("deprecated.rb", "warn 'old', uplevel: 0\n")
    write("uses.rb", "require 'deprecated'\n")
    assert_match %r{\A#{@folder}/deprecated\.rb:1: warning: old$}, errors_of("BootRequires.during { require 'uses' }")
  end

  # Compiled code must not call Ruby's `require` itself: Ruby 3.1 crashes then.
  def test_a_rails_application_with_the_compiler
    skip "this Ruby has no YJIT" unless defined?(RubyVM::YJIT)
    [10, 50, 200].each do |calls|
      code = 'Dir.chdir(ARGV[0]) { BootRequires.during { require File.expand_path("config/environment") } }; exit!(0)'
      environment = { "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "x" }
      output, ended = Open3.capture2e(environment, RbConfig.ruby, "--yjit", "--yjit-call-threshold=#{calls}", "-I", LIB,
                                      "-e", HEAD + code, SHOP)
      assert_predicate ended, :success?, output[0, 2000]
    end
  end

  def test_without_rubygems
    assert_equal true, run_ruby("BootRequires.during { require 'one' }", options: ["--disable-gems"])
  end

  private

  def write(path, content) = File.write(File.join(@folder, path), content)

  # The value of this code.
  def run_ruby(code, otherwise = "", options: [])
    output, errors, ended = ruby("value = begin; #{code}\n#{otherwise}\nend; print Marshal.dump(value)", options)
    assert_predicate ended, :success?, errors
    Marshal.load(output) # rubocop:disable Security/MarshalLoad -- of this test
  end

  def errors_of(code) = ruby(code, [])[1]

  def ruby(code, options)
    Open3.capture3(RbConfig.ruby, *options, "-I", LIB, "-I", @folder, "-e", HEAD + code)
  end
end
