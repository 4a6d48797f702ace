# frozen_string_literal: true

require "bundler"
require "minitest/autorun"
require "tmpdir"
require "highball/diagnosis"

class DiagnosisTest < Minitest::Test
  def test_a_syntax_error_points_to_where_the_parser_stumbled
    error = diagnose("def broken(\nend\n")
    assert_equal "SyntaxError", error[:class]
    assert_equal File.join(@root, "app.rb"), error[:file]
    assert_includes 1..3, error[:line]
  end

  def test_an_exception_points_to_the_innermost_line_of_the_application
    error = diagnose("def call = Integer('x')\n\ncall\n")
    assert_equal "ArgumentError", error[:class]
    assert_equal [File.join(@root, "app.rb"), 1], error.values_at(:file, :line)
  end

  def test_an_exit_says_so
    error = diagnose("exit 3")
    assert_equal "SystemExit", error[:class]
    assert_match(/exit was called with status 3/, error[:message])
  end

  def test_what_an_exit_hides_comes_to_light
    error = diagnose("begin; raise KeyError, 'the reason'; rescue KeyError; exit 1; end")
    assert_equal ["KeyError", "the reason"], error.values_at(:class, :message)
  end

  def test_a_missing_gem_points_to_its_own_line
    { "# See github.com/rails/sprockets-rails\ngem \"rack\" # no sprockets-rails\ngem \"sprockets-rails\"\n" => 3,
      "# sprockets-rails\ngems = %w[sprockets-rails]\ngems.each { |name| gem name }\n" => 2,
      "# sprockets-rails\n" => 1 }.each do |gemfile, line|
      Dir.mktmpdir do |root|
        File.write(File.join(root, "Gemfile"), gemfile)
        missing = Bundler::GemNotFound.new("Could not find gem 'sprockets-rails' in locally installed gems.")
        error = Highball::Diagnosis.new(missing, root: root).error
        assert_equal [File.join(root, "Gemfile"), line], error.values_at(:file, :line), gemfile
      end
    end
  end

  def test_it_stays_within_bounds
    error = diagnose("def deep(n) = n.zero? ? raise('x' * 100_000) : deep(n - 1)\ndeep(500)\n")
    assert_operator error[:message].bytesize, :<=, Highball::Diagnosis::MESSAGE_BYTES
    assert_operator error[:backtrace].length, :<=, Highball::Diagnosis::BACKTRACE_LINES
  end

  def test_an_exception_without_backtrace_has_no_place
    error = Highball::Diagnosis.new(RuntimeError.new("bare")).error
    assert_equal [nil, nil, []], error.values_at(:file, :line, :backtrace)
  end

  private

  def diagnose(code)
    Dir.mktmpdir do |root|
      @root = File.realpath(root)
      path = File.join(@root, "app.rb")
      File.write(path, code)
      begin
        load path
      rescue Exception => e # rubocop:disable Lint/RescueException -- SystemExit and SyntaxError are among them
        return Highball::Diagnosis.new(e, root: @root).error
      end
    end
    flunk "nothing was raised"
  end
end
