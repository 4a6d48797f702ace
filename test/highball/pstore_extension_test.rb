# frozen_string_literal: true

require "open3"
require_relative "../support/pstore_test_case"

# What PStore does by Highball's extension: it must be what Ruby does. The other tests of PStore run with it here, and
# without it in `pstore_without_extension_test.rb`.
class PStoreExtensionTest < PStoreTestCase
  PLAIN = { "root" => { number: 0, text: "x", list: [1, "two", nil, true, false] }, 5 => [], :empty => {},
            "ä" => [+"ä", "\xff", "\xff".b, "ascii".encode("US-ASCII"), ""] }.freeze
  NUMBERS = [0, 1, -1, 122, 123, -123, -124, 255, 256, -255, -256, -257, 65_535, 65_536, -65_536, -65_537,
             (2**24) - 1, 2**24, -(2**24), -(2**24) - 1, (2**30) - 1, -(2**30)].freeze
  MARKED = (+"x").tap { |text| text.instance_variable_set(:@a, 1) }
  SINGLETON = [].tap { |list| list.extend(Comparable) }
  IDENTITY = {}.compare_by_identity
  # What Ruby has to write, and to read.
  OTHERS = [2**30, -(2**30) - 1, 2**70, 1.5, 3r, 1..2, Time.at(0), :ä, :E, "\xff".b.to_sym, "ä".encode("ISO-8859-1"),
            MARKED, SINGLETON, IDENTITY, Hash.new(5), Hash.ruby2_keywords_hash({ a: 1 }), Integer, [+"same"] * 2].freeze
  Text = Class.new(String)

  def setup
    super
    flunk "the extension is not built, or not loaded" unless Highball::PStore::EXTENSION
    @random = Random.new(Integer(ENV.fetch("SEED", Random.new_seed % 10_000)))
  end

  def test_plain_objects_are_written_and_read_as_marshal_does_it
    [PLAIN, NUMBERS, "text", [], {}].each do |object|
      bytes = Highball::Native.dump_plain(object)
      assert_equal Marshal.dump(object), bytes
      assert_equal Encoding::BINARY, bytes.encoding
      assert_same Highball::Native.load_plain(bytes), bytes
    end
  end

  def test_what_is_loaded_can_be_changed
    loaded = Highball::Native.load_plain(Marshal.dump({ "a" => ["b"] }))
    loaded["a"].first << "c"
    loaded["a"] << 1
    assert_equal({ "a" => ["bc", 1] }, loaded)
    assert_predicate loaded.keys.first, :frozen?
  end

  def test_all_else_is_left_to_ruby
    itself = []
    itself << itself
    deep = (1..40).inject([]) { |list, _| [list] }
    [*OTHERS, Text.new("x"), Hash.new { 1 }, -> {}, Mutex.new, itself, deep].each do |object|
      [object, [object], { a: object }].each { |part| assert_nil Highball::Native.dump_plain(part), part.inspect }
      bytes = bytes_of([object]) or next
      assert_equal bytes, bytes_of(Highball::PStore::Format.load(bytes))
    end
  end

  def test_keys_that_may_have_methods_are_left_to_ruby
    [[1], { a: 1 }, nil].each { |key| assert_nil Highball::Native.load_plain(Marshal.dump({ key => 1 })) }
  end

  def test_random_objects
    2000.times do
      object = value
      bytes = Marshal.dump(object)
      assert_equal bytes, Highball::PStore::Format.dump(object), "seed #{@random.seed}"
      loaded = Highball::Native.load_plain(bytes)
      assert_same loaded, bytes unless loaded.nil?
    end
  end

  # Changed bytes are loaded as by Marshal, or left to it, with its errors.
  def test_bytes_that_are_no_objects
    bytes = Marshal.dump(PLAIN)
    bytes.bytesize.times { |length| assert_nil Highball::Native.load_plain(bytes.byteslice(0, length)) }
    assert_nil Highball::Native.load_plain("#{bytes}0")
    loaded = 20_000.times.count do
      changed = bytes.dup
      (1 + @random.rand(2)).times { changed.setbyte(@random.rand(bytes.bytesize), @random.rand(256)) }
      object = Highball::Native.load_plain(changed)
      assert_same object, changed unless object.nil?
      object
    end
    assert_operator loaded, :>, 1000, "seed #{@random.seed}"
  end

  def test_a_lock_of_another_is_not_waited_for
    with_locked_file do |arguments, other|
      other.flock(File::LOCK_SH)
      refute Highball::Native.lock_same(*arguments)
      other.flock(File::LOCK_UN)
      assert Highball::Native.lock_same(*arguments)
      refute other.flock(File::LOCK_SH | File::LOCK_NB)
    end
  end

  def test_whether_the_file_is_as_it_was
    with_locked_file do |(file, path, identity, bytes), other|
      skip "this file system cannot tell" if Highball::Native.lock_same(file, path, identity, bytes).nil?
      refute Highball::Native.lock_same(file, path, identity, "bytez")
      refute Highball::Native.lock_same(file, path, identity, "byte")
      refute Highball::Native.lock_same(file, path, identity.reverse, bytes)
      refute Highball::Native.lock_same(file, "#{path}2", identity, bytes)
      other.chmod(0o600)
      refute Highball::Native.lock_same(file, path, identity, bytes)
    end
  end

  LOADED = <<~RUBY
    before = $LOADED_FEATURES.dup
    require "highball/pstore"
    puts $LOADED_FEATURES - before
  RUBY

  def test_what_is_loaded_with_pstore
    lib = File.expand_path("../../lib", __dir__)
    output, status = Open3.capture2e(RbConfig.ruby, "-I", lib, "-e", LOADED)
    assert_predicate status, :success?, output
    own = %r{\A#{lib}/highball/(?:pstore(?:/\w+)?\.rb|native\.rb|[\d.]+/highball_ext\.so)\z}
    assert_empty output.lines.map(&:chomp).grep_v(own).grep_v(/rbconfig\.rb\z/)
    assert_match(/highball_ext\.so$/, output)
  end

  private

  # Whether an object is what Marshal makes of the bytes.
  def assert_same(object, bytes)
    by_ruby = Marshal.load(bytes) # rubocop:disable Security/MarshalLoad
    assert_equal Marshal.dump(by_ruby), Marshal.dump(object), "seed #{@random.seed}: #{bytes.inspect}"
  end

  # Nil if Marshal refuses.
  def bytes_of(object)
    Marshal.dump(object)
  rescue TypeError
    nil
  end

  # The arguments of Native.lock_same for a file, and the same file opened again.
  def with_locked_file
    File.binwrite(@path, "bytes")
    File.open(@path, "r+b") do |file|
      stat = file.stat
      identity = [stat.dev, stat.ino, stat.mode, stat.uid].pack("Q*")
      File.open(@path) { |other| yield [file.fileno, @path, identity, "bytes"], other }
    end
  end

  def value(depth = 4)
    case @random.rand(depth.zero? ? 4 : 7)
    when 0 then (@random.rand(20).zero? ? OTHERS.first(10) : [nil, true, false]).sample(random: @random)
    when 1 then NUMBERS.sample(random: @random)
    when 2 then [:number, :text, :list, :"", :"a b", :"#{@random.rand(50)}"].sample(random: @random)
    when 3 then ["text", "ä", "\xff".b, "\xff", "", "x" * 300, "a".encode("US-ASCII")].sample(random: @random).dup
    when 4, 5 then Array.new(@random.rand(5)) { value(depth - 1) }
    else Array.new(@random.rand(5)) { [value(0), value(depth - 1)] }.to_h
    end
  end
end
