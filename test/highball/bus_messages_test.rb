# frozen_string_literal: true

require "minitest/autorun"
require "highball/cable/bus_messages"

# What a worker keeps of a bus between machines while another worker brings messages in.
class BusMessagesTest < Minitest::Test
  Message = Highball::Cable::BusMessages::Message

  def setup
    @messages = Highball::Cable::BusMessages.new
  end

  def test_messages_behind_the_place_are_taken
    %w[a:1 a:2 a:3].each { |place| push(place) }
    assert @messages.begin_behind("a:2"), "none is missing"
    assert_equal %w[a:3], taken
  end

  def test_places_are_known_while_they_are_kept
    %w[a:1 b:0].each { |place| push(place) }
    assert(%w[a:1 b:0].all? { |place| @messages.known?(place) })
    @messages.begin_behind("a:1")
    refute @messages.known?("a:1")
  end

  def test_all_are_taken_where_the_place_is_unknown
    push("a:1")
    refute @messages.begin_behind("b:7"), "messages may be missing"
    assert_equal %w[a:1], taken
  end

  def test_the_first_process_misses_nothing
    push("a:1")
    assert @messages.begin_behind("")
    assert_equal %w[a:1], taken
  end

  def test_the_oldest_are_dropped_while_another_process_brings_them
    (Highball::Cable::BusMessages::MOST + 5).times { |number| push("a:#{number}") }
    refute @messages.begin_behind("a:3"), "it was dropped"
    assert_equal "a:5", @messages.pop.place
    assert_equal Highball::Cable::BusMessages::MOST - 1, taken.length
  end

  def test_large_messages_count_by_their_bytes
    3.times { |number| push("a:#{number}", "x" * (Highball::Cable::BusMessages::BYTES / 2)) }
    @messages.begin_behind("")
    assert_operator taken.length, :<, 3
  end

  def test_a_full_buffer_waits_once_messages_are_taken
    @messages.begin_behind("")
    pushing = Thread.new { (Highball::Cable::BusMessages::MOST + 1).times { |number| push("a:#{number}") } }
    Thread.pass until pushing.stop?
    assert_predicate pushing, :alive?
    assert_equal "a:0", @messages.pop.place
    pushing.join
    assert_equal Highball::Cable::BusMessages::MOST, taken.length
  end

  private

  def push(place, text = "text") = @messages.push(Message.new(place, "room", text))

  def taken
    @messages.close
    messages = []
    while (message = @messages.pop)
      messages << message.place
    end
    messages
  end
end
