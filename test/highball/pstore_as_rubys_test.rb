# frozen_string_literal: true

require "minitest/autorun"
require_relative "../support/debian_source"

# Highball's PStore passes the tests that Ruby has for its own. They are in the source package of Debian's Ruby, which
# `bin/test --full` downloads.
class PStoreAsRubysTest < Minitest::Test
  LIB = File.expand_path("../../lib", __dir__)
  RUBY = ["ruby#{RUBY_VERSION[/\d+\.\d+/]}", RUBY_VERSION].freeze
  INSTALL = "require 'highball/pstore'; Highball::PStore.install!(durable: false)\n"
  # (tool/lib has the assertions of Ruby's tests. Its test/unit is for Ruby's build folder only.)
  HELPER = <<~RUBY
    require "test/unit"
    %w[envutil find_executable core_assertions].each { |name| require_relative "tool/lib/\#{name}" }
    Test::Unit::TestCase.include(Test::Unit::CoreAssertions)
  RUBY

  def test_the_tests_of_pstore
    run_tests("test/test_pstore.rb", at_least: 10)
  end

  def test_the_tests_of_yaml_store
    run_tests("test/yaml/test_store.rb", at_least: 8)
  end

  private

  def run_tests(file, at_least:)
    Dir.mktmpdir("highball-ruby-tests") do |folder|
      download = ENV["HIGHBALL_TEST_LEVEL"] == "full"
      DebianSource.unpack(*RUBY, file, "tool/lib/*", into: folder,
                                                     download: download) or skip "no source of Ruby: bin/test --full"
      File.write("#{folder}/install.rb", INSTALL)
      File.write("#{folder}/helper.rb", HELPER)
      output = run_ruby(folder, file)
      assert_match(/, 0 failures, 0 errors, 0 pendings/, output)
      assert_operator output[/(\d+) tests/, 1].to_i, :>=, at_least, output
    end
  end

  # (Processes that the tests start have the PStore of Highball, too.)
  def run_ruby(folder, file)
    environment = { "RUBYOPT" => "-rinstall", "RUBYLIB" => "#{LIB}:#{folder}", "TMPDIR" => folder }
    IO.popen([environment, "ruby", "-r#{folder}/helper", "#{folder}/#{file}", { err: %i[child out] }], &:read)
  end
end
