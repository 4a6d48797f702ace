# frozen_string_literal: true

require_relative "../support/pstore_test_case"

# The bytes of a PStore's file when few of its roots change: what Marshal writes for the whole table.
class PStoreLayoutTest < PStoreTestCase
  ROOTS = 40
  COMMITS = 60
  STRINGS = ["text", "ä", "ä".encode("ISO-8859-1"), "\xff".b, "", "x" * 300, "with @ ; : [ { I \" \x04\x08"].freeze
  SYMBOLS = %i[number text list a bb sch\ on].freeze
  INTEGERS = [0, 1, -1, 122, 123, 255, 256, -123, -124, -256, -257, 65_536, 2**30, -(2**30), 2**31, 2**40, 2**62].freeze

  def setup
    super
    @store = Highball::PStore.new(@path, durable: false)
    @random = Random.new(Integer(ENV.fetch("SEED", Random.new_seed % 10_000)))
  end

  def test_a_commit_of_some_roots_writes_what_marshal_would_write
    expected = fill(ROOTS) { |number| "root#{number}" }
    commits = Array.new(COMMITS) { change(expected, likely(expected)) }
    assert_operator commits.count(true), :>, COMMITS / 3, "seed #{@random.seed}: the layout is hardly used"
  end

  def test_names_that_are_symbols_add_symbols
    expected = fill(ROOTS) { |number| :"root#{number}" }
    commits = Array.new(COMMITS) { change(expected, likely(expected)) }
    assert_operator commits.count(true), :>, COMMITS / 3, "seed #{@random.seed}: the layout is hardly used"
  end

  def test_values_of_any_kind
    expected = fill(ROOTS) { |number| number.even? ? number : "root#{number}" }
    (4 * COMMITS).times do
      names = expected.keys.sample(1 + @random.rand(3), random: @random)
      change(expected, names.to_h { |name| [name, @random.rand(4).zero? ? value : plain(@random.rand(100))] })
    end
  end

  def test_names_are_added_and_removed
    expected = fill(ROOTS) { |number| "root#{number}" }
    (2 * COMMITS).times do |number|
      removed = expected.keys.sample(random: @random)
      case @random.rand(8)
      when 0 then @store.transaction { @store.delete(removed) } && expected.delete(removed)
      when 1 then change(expected, { "new#{number}" => plain(number) })
      else change(expected, likely(expected))
      end
      assert_same_bytes(expected)
    end
  end

  def test_objects_that_two_roots_share_and_equal_floats
    expected = fill(ROOTS) { |number| "root#{number}" }
    shared = ["shared"]
    [[shared, shared], [1.5, 1.5], [[+"a"] * 2, 1], [2**70, 2**70]].each do |one, other|
      10.times { change(expected, likely(expected)) }
      change(expected, { "root3" => one, "root30" => other })
    end
    @store.transaction { @store["root3"] = @store["root30"] = [1] }
    @store.transaction { @store["root3"] << 2 }
    assert_equal [1, 2], @store.transaction(true) { @store["root30"] }
  end

  # Ruby keeps equal ones as one object, to which Marshal refers.
  def test_strings_as_keys_of_hashes
    expected = fill(ROOTS) { |number| "root#{number}" }
    20.times { change(expected, likely(expected)) }
    refute_nil layout
    2.times { |number| change(expected, { "root#{number}" => { "key" => [number] } }) }
    20.times { change(expected, likely(expected.except("root0", "root1"))) }
    assert_nil layout, "seed #{@random.seed}"
  end

  def test_a_commit_that_fails_or_is_aborted_changes_no_piece
    expected = fill(ROOTS) { |number| "root#{number}" }
    20.times { change(expected, likely(expected)) }
    @store.transaction { (@store["root1"][:number] = 77) && @store.abort }
    assert_raises(TypeError) do
      @store.transaction do
        @store["root1"][:number] = 78
        @store["root2"] = -> {}
      end
    end
    assert_same_bytes(expected)
    change(expected, likely(expected))
  end

  def test_another_format_has_no_layout
    store = Class.new(Highball::PStore) do
      def dump(table) = "#{super.unpack1('H*')}\n"
      def load(content) = super([content.strip].pack("H*"))
    end.new(@path)
    store.transaction { ROOTS.times { |number| store[number] = plain(number) } }
    20.times { |number| store.transaction { store[5][:number] = number } }
    assert_equal 19, store.transaction(true) { store[5][:number] }
    assert_match(/\A0408\h+\n\z/, File.read(@path))
  end

  private

  def fill(count)
    expected = Array.new(count) { |number| [yield(number), plain(number)] }.to_h
    @store.transaction { expected.each { |name, value| @store[name] = copy(value) } }
    expected
  end

  # A change that adds no symbol.
  def likely(expected)
    name = expected.keys.sample(random: @random)
    { name => plain(@random.rand(1000)) }
  end

  def plain(number) = { number: number, text: "text #{number}", list: [number, +"two"] }

  def value(depth = 3)
    case @random.rand(depth.zero? ? 4 : 7)
    when 0 then [nil, true, false, 1.5, 3r, 1..2].sample(random: @random)
    when 1 then INTEGERS.sample(random: @random)
    when 2 then SYMBOLS.sample(random: @random)
    when 3 then STRINGS.sample(random: @random).dup
    when 4, 5 then Array.new(@random.rand(4)) { value(depth - 1) }
    else Array.new(@random.rand(4)) { [(SYMBOLS + INTEGERS).sample(random: @random), value(depth - 1)] }.to_h
    end
  end

  # Whether the layout was used.
  def change(expected, values)
    before = layout
    @store.transaction { values.each { |name, value| @store[name] = value } }
    values.each { |name, value| expected[name] = copy(value) }
    assert_same_bytes(expected)
    !before.nil? && !layout.nil?
  end

  def assert_same_bytes(expected)
    in_file = File.binread(@path)
    assert_equal expected, Marshal.load(in_file), "seed #{@random.seed}" # rubocop:disable Security/MarshalLoad
    assert_equal Marshal.dump(Marshal.load(in_file)), in_file, "seed #{@random.seed}" # rubocop:disable Security/MarshalLoad
    assert_equal expected, content
  end

  def layout = @store.instance_variable_get(:@snapshot)&.instance_variable_get(:@layout)
  def copy(value) = Marshal.load(Marshal.dump(value))
end
