# frozen_string_literal: true

require "minitest/autorun"
require "json"
require "highball/message"

class MessageTest < Minitest::Test
  Message = Highball::Message

  def test_every_kind_of_value_survives
    value = { "type" => "booted", "pid" => 42, "public" => nil, "restartable" => true, "list" => ["a", { "b" => [] }] }
    assert_equal value, JSON.parse(Message.encode(value))
  end

  def test_text_of_every_kind_is_legal_json
    ["", "a\"b\\c\n\t\r", "\u0000\u001f", "grün", "\e[31mred\e[0m"].each do |text|
      assert_equal [text], JSON.parse(Message.encode([text]))
    end
  end

  def test_broken_and_foreign_encodings_become_utf8
    ["\xFF\xFEbroken", "caf\xE9".dup.force_encoding("ISO-8859-1"), "gr\xC3\xBCn".b, "\xFF".b].each do |text|
      assert_predicate JSON.parse(Message.encode([text])).first, :valid_encoding?
    end
    assert_equal ["café"], JSON.parse(Message.encode(["caf\xE9".dup.force_encoding("ISO-8859-1")]))
    assert_equal ["grün"], JSON.parse(Message.encode(["gr\xC3\xBCn".b]))
  end

  def test_symbols_are_text
    assert_equal({ "type" => "step" }, JSON.parse(Message.encode({ type: :step })))
  end
end
