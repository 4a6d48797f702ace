# frozen_string_literal: true

require "minitest/autorun"
require "json"

# What the front remembers of the connections and channels of Action Cable.
class CableCarriedTest < Minitest::Test
  # An application's record.
  class Record
    attr_reader :id

    def initialize(id) = @id = id
    def self.find(id) = id == "1" ? new(id) : raise("there is none")
    def ==(other) = other.is_a?(Record) && other.id == id
  end

  Holder = Class.new

  def setup
    require "action_cable"
    require "global_id"
    require "highball/cable"
    GlobalID.app = "carried-test"
    Record.include(GlobalID::Identification)
  rescue LoadError
    skip "needs Action Cable"
  end

  def test_values_come_back
    values = [nil, true, false, 0, -(2**70), 1.5, "caf\u00e9", "\xFF".b, "in Latin-1".encode("ISO-8859-1").b, :a, "".b,
              [1, ["x", nil]], { "a" => 1, b: [:c], 3 => { nil => 1 } }, {}, [],
              { "x" => { "y" => 1 } }.with_indifferent_access, Record.new("1"), [Record.new("1")]]
    values.each do |value|
      back = carried(value)
      assert_equal [value, value.class], [back, back.class]
    end
  end

  def test_what_json_cannot_have_is_refused_and_named
    [Object.new, Mutex.new, Float::NAN, Class.new(String).new("x"), Class.new(Array).new, Hash.new { 1 }, -> {},
     Record.new(nil), [1, { a: Object.new }], $stdout, (1..2), Class].each do |value|
      error = assert_raises(Highball::Cable::Unsupported) { carried(value) }
      assert_match(/\ACableCarriedTest::Holder keeps @value, an object of /, error.message)
    end
  end

  def test_a_record_that_has_gone
    ["gid://carried-test/CableCarriedTest::Record/2", "gid://carried-test/None/1", "x"].each do |global_id|
      assert_raises(Highball::Cable::Session::Outdated) { Highball::Cable::Carried.value({ "record" => global_id }) }
    end
  end

  def test_what_action_cable_makes_again_is_left_out
    holder = Holder.new
    %i[@value @params @_streams].each { |name| holder.instance_variable_set(name, Mutex.new) }
    holder.instance_variable_set(:@value, 1)
    assert_equal({ "@value": 1 }, Highball::Cable::Carried.dump(holder, Highball::Cable::Carried::OF_CHANNEL))
  end

  private

  def carried(value)
    holder = Holder.new
    holder.instance_variable_set(:@value, value)
    text = JSON.generate(Highball::Cable::Carried.dump(holder, []))
    back = Holder.new
    Highball::Cable::Carried.restore(back, JSON.parse(text))
    back.instance_variable_get(:@value)
  end
end
