# frozen_string_literal: true

require "minitest/autorun"
require "highball/lasting_state"
require "securerandom"

# What requests have left in variables that last, and may be meant for one process.
class LastingStateTest < Minitest::Test
  # Stands for an application: it lies in the folder that is the application's here.
  module App
    BUFFER = [] # rubocop:disable Style/MutableConstant -- that is the point
    HITS = Hash.new(0)
    CACHE = {} # rubocop:disable Style/MutableConstant
    FROZEN = [1].freeze

    class << self
      attr_accessor :next, :name, :ids, :columns, :cache, :allocator, :pid, :lines
    end

    # An object that counts.
    class Allocator
      def initialize = @range = Range.new(@next = 1, 1000)
      def next = @next += 1
    end

    # Empties all variables.
    def self.reset
      instance_variables.each { |name| remove_instance_variable(name) }
      [BUFFER, HITS, CACHE].each(&:clear)
    end
  end

  def setup
    App.reset
    App.lines = ["first"]
    @state = Highball::LastingState.new(__dir__)
  end

  def teardown = App.reset

  def test_nothing_has_changed
    assert_empty @state.changed
    @state.note_use
    assert_empty @state.changed
  end

  def test_a_number
    assert_found("App.@next") { App.next = 1 }
  end

  def test_an_identifier
    assert_found("App.@name") { App.name = SecureRandom.hex(8) }
    assert_found("App.@name") { App.name = SecureRandom.uuid }
    assert_found("App.@name") { App.name = "host-#{Process.pid}" }
    assert_found("App.@name") { App.name = "/tmp/app-x" }
  end

  def test_numbers_that_were_reserved
    assert_found("App.@ids") { App.ids = [17, 18, 19] }
    assert_found("App.@ids") { App.ids = 1000..1999 }
  end

  def test_lists_that_grow
    assert_found("App::BUFFER") { App::BUFFER << "event" }
    assert_found("App.@lines") { App.lines << "second" }
  end

  def test_an_object_of_the_application_and_a_global_variable
    assert_found("App.@allocator.@next", "App.@allocator.@range") { App.allocator = App::Allocator.new }
    assert_found("$lasting_state_test") { $lasting_state_test = 5 } # rubocop:disable Style/GlobalVars
  end

  def test_counts_in_a_hash
    App::HITS["/"] += 1
    @state.note_use
    assert_empty @state.changed, "it may be a cache"
    App::HITS["/"] += 1
    assert_equal ["LastingStateTest::App::HITS"], @state.changed
  end

  def test_a_list_that_was_made_and_then_grows
    App.lines = nil
    state = Highball::LastingState.new(__dir__)
    App.lines = ["first"]
    state.note_use
    assert_empty state.changed
    App.lines << "second"
    assert_equal ["LastingStateTest::App.@lines"], state.changed
  end

  def test_caches_and_what_is_the_same_in_all_processes
    App.cache = { key: "value", 1 => [2] }
    App::CACHE["issues"] = "SELECT 1"
    App.columns = %w[id name]
    App.name = "issues"
    App.pid = Process.pid
    @state.note_use
    App::CACHE["users"] = "SELECT 2"
    assert_empty @state.changed
  end

  def test_what_hooks_have_set_is_set_in_each_process
    App.next = 3
    @state.note_hooks
    assert_empty @state.changed
    App.name = SecureRandom.uuid
    assert_equal ["LastingStateTest::App.@name"], @state.changed
  end

  # The same variables, of a library.
  def test_libraries_are_judged_less_strictly
    state = Highball::LastingState.new("/somewhere/else")
    App.next = 5
    App.ids = [1, 2]
    App::BUFFER << "entry"
    state.note_use
    assert_empty state.changed
    App.lines << "second"
    assert_equal ["LastingStateTest::App.@lines"], state.changed, "it grows while it is in use"
    App.next = 1 << 20
    App.name = SecureRandom.hex(8)
    assert_equal %w[@lines @name @next].map { |name| "LastingStateTest::App.#{name}" }, state.changed
  end

  def test_constants_that_are_loaded_when_they_are_used_are_not_loaded
    App.autoload(:Missing, "/nowhere/missing.rb")
    assert_empty @state.changed
  ensure
    App.send(:remove_const, :Missing)
  end

  private

  def assert_found(*names)
    yield
    found = @state.changed
    teardown
    $lasting_state_test = nil # rubocop:disable Style/GlobalVars
    App.lines = ["first"]
    assert_equal names.map { |name| name.start_with?("$") ? name : "LastingStateTest::#{name}" }, found
  end
end
