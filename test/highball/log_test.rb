# frozen_string_literal: true

require "minitest/autorun"
require "json"
require "stringio"
require "highball/exception_words"
require "highball/log"

# Event lines from Ruby, in the same form as the binary's (crates/highball/src/log.rs).
class LogTest < Minitest::Test
  TIME = /\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/

  def line(format, event, **facts)
    out = StringIO.new
    Highball::Log.new(format: format, out: out, worker: 3).error(event, **facts)
    out.string
  end

  def test_people_get_a_line_and_long_facts_below_it
    facts = { state: "in flight", none: nil, error: "E", backtrace: "a.rb:1\n\nb.rb:2", long: "x" * 61 }
    text = line("human", :thread_interrupted, **facts)
    assert_match TIME, text
    assert_equal <<~TEXT, text.sub(TIME, "T")
      T ERROR a serving thread was interrupted worker=3 state="in flight" error=E
          backtrace: a.rb:1
              b.rb:2
          long: #{'x' * 61}
    TEXT
  end

  def test_programs_get_an_object
    text = line("json", :thread_interrupted, error: "caf\xE9".b, backtrace: "a.rb:1\nb.rb:2")
    object = JSON.parse(text)
    assert_match TIME, object.delete("time")
    assert_equal({ "level" => "error", "event" => "thread_interrupted", "message" => "a serving thread was interrupted",
                   "worker" => 3, "error" => "caf\\xE9", "backtrace" => "a.rb:1\nb.rb:2" }, object)
    assert_equal 1, text.lines.length
  end

  def test_no_text_moves_the_cursor_or_breaks_the_encoding
    ["\e[2J", "\r\0", "\xFF", "é".encode("UTF-16BE"), "é".encode("ISO-8859-1"),
     "x".dup.force_encoding("UTF-7")].each do |value|
      text = line("human", :thread_interrupted, value: value)
      assert_predicate text, :valid_encoding?
      refute_match(/[\e\r\0]/, text)
    end
  end

  def test_an_exception_is_told_with_its_causes
    error = begin
      begin
        raise ArgumentError, "inner"
      rescue ArgumentError
        raise "outer"
      end
    rescue RuntimeError => e
      e
    end
    facts = Highball::ExceptionWords.new(error).facts
    assert_equal "RuntimeError: outer", facts[:error]
    assert_match(/\AArgumentError: inner \(.*log_test\.rb:\d+/, facts[:cause])
    assert_match(/\A\S*log_test\.rb:\d+/, facts[:backtrace])
  end

  def test_what_was_never_raised_has_no_backtrace
    assert_equal({ error: "RuntimeError: calm", cause: nil, backtrace: nil },
                 Highball::ExceptionWords.new(RuntimeError.new("calm")).facts)
  end
end
