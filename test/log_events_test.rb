# frozen_string_literal: true

require "minitest/autorun"
require_relative "support/log_events"

# Each line of Highball's log is an event with a name. docs/log-events.md lists them: HIGHBALL_BLESS=1 writes its table.
class LogEventsTest < Minitest::Test
  TABLE = /^\| event \|.*(?=\n\n|\n\z)/m

  def test_every_line_has_a_name
    nameless = LogEvents.places.reject(&:name)
    assert_empty(nameless.map { |place| "#{place.file}:#{place.line}: #{place.message}" })
    assert_operator LogEvents.places.length, :>, 200
    assert_empty LogEvents.nameless_in_ruby
    in_ruby = LogEvents.ruby_places.map { |place| place.name.to_sym }
    assert_equal Highball::Log::EVENTS.keys.sort, in_ruby.uniq.sort
  end

  def test_the_page_lists_all_events
    page = File.read(LogEvents::PAGE)
    written = page.sub(TABLE) { LogEvents.table(LogEvents.advice) }
    File.write(LogEvents::PAGE, written) if ENV["HIGHBALL_BLESS"]
    assert_equal written, page, "write it: HIGHBALL_BLESS=1 ruby -Itest test/log_events_test.rb"
  end

  def test_the_page_says_what_to_do_about_warnings_and_errors
    advice = LogEvents.advice
    silent = LogEvents.all.reject { |event| event.levels == ["info"] || advice[event.name].to_s.end_with?(".") }
    assert_empty silent.map(&:name)
  end
end
