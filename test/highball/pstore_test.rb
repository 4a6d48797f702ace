# frozen_string_literal: true

require_relative "../support/pstore_test_case"
require "highball/yaml_store"

# What one process sees of a PStore. (`pstore_files_test.rb` is about its file, `pstore_processes_test.rb` about several
# processes.)
class PStoreTest < PStoreTestCase
  def test_rubys_reads_our_file_and_ours_reads_rubys
    values = { 1 => [1.5, nil, "ä"], :symbol => { "key" => [Time.at(0), 2**70] }, "name" => :value }
    @store.transaction { values.each { |name, value| @store[name] = value } }
    rubys = ::PStore.new(@path)
    assert_equal(values, rubys.transaction { rubys.roots.to_h { |name| [name, rubys[name]] } })
    rubys.transaction { rubys["more"] = 1 }
    settle
    3.times { assert_equal(values.merge("more" => 1), content) }
  end

  def test_rubys_change_of_the_same_size_is_seen_at_once
    rubys = ::PStore.new(@path)
    100.times do |number|
      rubys.transaction { rubys[:number] = 100 + (number % 20) }
      assert_equal(100 + (number % 20), @store.transaction(true) { @store[:number] })
    end
  end

  def test_objects_of_a_transaction_are_not_those_of_the_next
    @store.transaction { @store[:list] = [%w[a]] and @store[:text] = +"text" }
    settle
    3.times do
      list, text = @store.transaction(true) { [@store[:list], @store[:text]] }
      assert_equal [[%w[a]], "text"], [list, text]
      list.first << "changed"
      text << "changed"
    end
  end

  def test_what_was_written_is_not_changed_through_the_object_that_was_stored
    kept = { "list" => [1] }
    text = +"text"
    3.times do
      @store.transaction { @store[:kept] = kept and @store[:text] = text }
      kept["list"] << 2
      text << "!"
    end
    assert_equal [{ "list" => [1, 2, 2] }, "text!!"], @store.transaction(true) { [@store[:kept], @store[:text]] }
  end

  def test_a_change_within_an_object_is_written
    @store.transaction { @store[:a] = { list: [1] } and @store[:b] = "text" }
    3.times do |number|
      @store.transaction { @store[:a][:list] << number and @store[:b] << number.to_s }
    end
    assert_equal({ a: { list: [1, 0, 1, 2] }, b: "text012" }, content)
    assert_equal({ a: { list: [1, 0, 1, 2] }, b: "text012" }, in_file)
  end

  def test_roots_that_share_an_object_keep_sharing_it
    @store.transaction { @store[:a] = @store[:b] = ["x"] }
    3.times { |number| @store.transaction { @store[:a] << number } }
    assert_equal ["x", 0, 1, 2], in_file[:b]
    @store.transaction { @store.delete(:b) }
    @store.transaction { @store[:c] = [1] }
    @store.transaction { @store[:d] = @store[:c] }
    3.times { assert(@store.transaction(true) { @store[:d].equal?(@store[:c]) }) }
  end

  # Small values are copied without Marshal, from the second time on.
  def test_copies_are_those_that_marshal_would_make
    identity = {}.compare_by_identity
    identity[+"a"] = 1
    marked = (+"x").tap { |text| text.instance_variable_set(:@a, 1) }
    values = [
      { "a" => [1, +"x", { b: [nil, 1.5, [+"deep"]] }], :c => "ä".encode("ISO-8859-1"), 2 => +"" }, [], {}, [[[]]],
      [+"shared"] * 2, { a: (shared = [1]), b: [shared] }, Hash.new(5), identity, [marked], [1..2, 3r],
      [+"itself"].tap { |list| list << list }, (1..40).inject([]) { |list, _| [list] },
      [Hash.ruby2_keywords_hash({ a: +"x" })]
    ]
    @store.transaction { values.each_with_index { |value, index| @store[index] = value } }
    settle
    6.times do
      @store.transaction(true) do
        values.each_with_index do |value, index|
          assert_equal Marshal.dump(value), Marshal.dump(copy = @store[index]), "value #{index}"
          spoil(copy)
        end
      end
    end
  end

  def test_names_keep_their_order
    @store.transaction { %i[a b c].each { |name| @store[name] = 1 } }
    @store.transaction { @store[:a] = 2 }
    @store.transaction do
      assert_equal 2, @store.delete(:a)
      assert_nil @store.delete(:a)
      @store[:d] = 1
      @store[:a] = 3
      assert_equal %i[b c d a], @store.keys
    end
    assert_equal({ b: 1, c: 1, d: 1, a: 3 }, in_file)
    assert_equal in_file.to_a, content.to_a
  end

  SELDOM = Struct.new(:x)

  def test_names_and_values_that_are_seldom
    marked = +"x"
    marked.instance_variable_set(:@a, 1)
    names = ["s", :s, 1, 1.5, nil, [1], 2**70, Time.at(0)]
    values = [nil, false, 0.0, -0.0, "".b, "ä".encode("ISO-8859-1"), marked, SELDOM.new(1)]
    @store.transaction { names.zip(values) { |name, value| @store[name] = value } }
    expected = names.zip(values).to_h
    settle
    3.times do
      assert_equal expected, (found = content)
      assert_equal expected.values.grep(String).map(&:encoding), found.values.grep(String).map(&:encoding)
      assert_equal [:@a], found[2**70].instance_variables
    end
    @store.transaction { @store[1] = -0.0 }
    assert_equal "-0.0", in_file[1].to_s
  end

  def test_methods_outside_of_a_transaction_and_in_a_read_only_one
    [-> { @store[1] }, -> { @store.keys }, -> { @store.commit }, -> { @store.abort }, lambda {
                                                                                        @store[1] = 1
                                                                                      }].each do |use|
      assert_match(/not in transaction/, assert_raises(Highball::PStore::Error, &use).message)
    end
    @store.transaction(true) do
      assert_match(/read-only/, assert_raises(Highball::PStore::Error) { @store[1] = 1 }.message)
      assert_match(/read-only/, assert_raises(Highball::PStore::Error) { @store.delete(1) }.message)
      refute @store.root?(1)
      assert_equal 5, @store.fetch(1, 5)
      assert_match(/undefined root/, assert_raises(Highball::PStore::Error) { @store.fetch(1) }.message)
    end
    refute_path_exists @path
    @store.transaction { assert_nested }
  end

  def test_ways_out_of_a_transaction
    @store.transaction { @store[:a] = 1 }
    broken = @store.transaction do
      @store[:a] = 2
      break 5
    end
    assert_equal 5, broken
    @store.transaction { (@store[:a] = 3) && @store.abort }
    assert_raises(RuntimeError) { @store.transaction { (@store[:a] = 4) && raise } }
    catch(:out) { @store.transaction { (@store[:a] = 6) && throw(:out) } }
    assert_raises(Timeout::Error) { Timeout.timeout(0.01) { @store.transaction { (@store[:a] = 7) && sleep } } }
    thread = Thread.new { @store.transaction { (@store[:a] = 8) && sleep } }
    wait_for_sleep(thread)
    thread.kill.join
    assert_equal({ a: 1 }, content)
    assert_nil(@store.transaction { (@store[:a] = 9) && @store.commit })
    assert_equal({ a: 9 }, in_file)
  end

  def test_abort_ends_the_transaction_of_its_own_store
    other = Highball::PStore.new("#{@path}2")
    @store.transaction do
      @store[:a] = 1
      other.transaction { (other[:b] = 1) && @store.abort }
      flunk "the outer transaction goes on"
    end
    assert_equal [{}, {}], [content, content(other)]
  end

  def test_threads_wait_for_each_other
    threads = Array.new(8) { Thread.new { 50.times { @store.transaction { @store[:n] = (@store[:n] || 0) + 1 } } } }
    threads.each(&:join)
    assert_equal({ n: 400 }, in_file)
  end

  def test_the_values_of_another_threads_transaction_cannot_be_used
    @store.transaction do
      Thread.new { assert_raises(Highball::PStore::Error) { @store[:a] } }.join
    end
  end

  def test_a_thread_that_is_killed_while_it_waits_leaves_no_lock
    other = Highball::PStore.new(@path)
    20.times do
      other.transaction do
        waiting = Thread.new { @store.transaction { nil } }
        wait_for_sleep(waiting)
        waiting.kill.join
        assert_raises(Timeout::Error) { Timeout.timeout(0.001) { @store.transaction { nil } } }
      end
    end
    Timeout.timeout(5) { @store.transaction { @store[:a] = 1 } }
  end

  def test_errors_of_marshal_leave_the_file_as_it_was
    @store.transaction { @store[:a] = 1 }
    3.times do
      assert_raises(TypeError) { @store.transaction { @store[:b] = -> {} } }
      assert_raises(TypeError) { @store.transaction { @store[:b] = [Mutex.new] } }
      assert_equal({ a: 1 }, in_file)
      assert_equal({ a: 1 }, content)
    end
    assert_equal %w[store], Dir.children(@folder)
  end

  def test_the_yaml_store
    path = "#{@path}.yml"
    store = Highball::YAMLStore.new(path, indentation: 4, permitted_classes: [Time])
    store.transaction { store["a"] = { "b" => [1, :c, "ä"] } }
    3.times { assert_equal({ "a" => { "b" => [1, :c, "ä"] } }, content(store)) }
    assert_equal "---\na:\n    b:\n", File.read(path)[/.*b:\n/m]
    store.transaction { store["t"] = Time.at(0) }
    3.times { assert_equal Time.at(0), content(store)["t"] }
    File.write(path, "--- !ruby/object:Object {}\n")
    assert_raises(Psych::DisallowedClass) { content(store) }
    File.write(path, "")
    assert_equal({}, content(store))
  end

  def test_it_takes_the_place_of_rubys
    script = <<~RUBY
      require "yaml/store" if ARGV.last == "before"
      require "highball/pstore"
      Highball::PStore.install!(durable: false)
      Highball::PStore.install!(durable: false)
      require "pstore"
      require "yaml/store"
      abort "PStore is \#{PStore.ancestors}" unless PStore < Highball::PStore && YAML::Store < Highball::PStore
      store = PStore.new(ARGV.first)
      begin
        store.transaction { store[:a] = 1; store.transaction {} }
      rescue PStore::Error
        store.transaction { store[:b] = "\\xff".b * 200 }
      end
      yaml = YAML::Store.new(ARGV.first + ".yml", Indent: 2)
      2.times { yaml.transaction { yaml[:n] = (yaml[:n] || 0) + 1 } }
      p [store.transaction(true) { store.roots }, yaml.transaction(true) { yaml[:n] }]
    RUBY
    %w[after before].each do |moment|
      lib = File.expand_path("../../lib", __dir__)
      output = IO.popen(["ruby", "-w", "-Eutf-8:utf-8", "-I", lib, "-e", script, @path, moment],
                        err: %i[child out], &:read)
      assert_equal "[[:b], #{moment == 'after' ? 2 : 4}]\n", output
    end
  end

  private

  # Changes every part of a copy: the next one must not have the changes.
  def spoil(object, depth = 50)
    return if depth.zero?

    parts = object.is_a?(Hash) ? object.values : object
    parts.each { |part| spoil(part, depth - 1) } if parts.is_a?(Array)
    object << "spoilt" if object.is_a?(Array) || (object.is_a?(String) && !object.frozen?)
    object["spoilt"] = 1 if object.is_a?(Hash)
  end

  def assert_nested
    assert_match(/nested/, assert_raises(Highball::PStore::Error) { @store.transaction { nil } }.message)
  end
end
