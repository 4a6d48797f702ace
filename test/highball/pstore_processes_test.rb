# frozen_string_literal: true

require "minitest/autorun"
require "pstore"
require "timeout"
require "tmpdir"
require "highball/pstore"
require_relative "../support/kill_at"

# Several processes that use one PStore, and processes that are killed while they do.
class PStoreProcessesTest < Minitest::Test
  include KillAt

  FULL = ENV["HIGHBALL_TEST_LEVEL"] == "full"
  SECONDS = FULL ? 60 : 1
  KILLS = FULL ? 1000 : 100

  def setup
    @folder = Dir.mktmpdir("highball-pstore")
    @path = File.join(@folder, "store")
    @children = []
  end

  def teardown
    @children.each { |pid| end_child(pid) }
    FileUtils.rm_rf(@folder)
  end

  def test_no_update_is_lost
    counts = counted_by(Array.new(8) { -> { Highball::PStore.new(@path) } }, threads: 4)
    assert_equal counts.sum, value(:count)
    assert_operator counts.min, :>, 0
  end

  def test_no_update_is_lost_without_fsync
    counts = counted_by(Array.new(8) { -> { Highball::PStore.new(@path, durable: false) } }, threads: 4)
    assert_equal counts.sum, value(:count)
  end

  def test_no_update_is_lost_beside_rubys_pstore
    rubys = -> { ::PStore.new(@path, true) }
    ours = -> { Highball::PStore.new(@path, durable: false, in_place: true) }
    counts = counted_by([rubys, ours] * 3, threads: 2)
    assert_equal counts.sum, value(:count)
    assert_operator counts.min, :>, 0
  end

  # (Without in_place, an update of Ruby's can be lost: it does not notice that the file was replaced while it waited.)
  def test_rubys_reads_whole_states_beside_ours
    writer = child { |store| loop { change(store) } }
    rubys = ::PStore.new(@path)
    Timeout.timeout(10) { Thread.pass until File.size?(@path) }
    last = 0
    200.times do
      number = rubys.transaction(true) { assert_whole(rubys) }
      assert_operator number, :>=, last
      last = number
    end
  ensure
    end_child(writer)
  end

  def test_killed_at_any_moment_nothing_is_torn_or_lost
    KILLS.times do |kill|
      reader, writer = IO.pipe
      pid = child(Highball::PStore.new(@path, durable: kill.even?)) do |store|
        loop { writer.syswrite([change(store)].pack("Q")) }
      end
      writer.close
      reader.read(8)
      sleep rand * 0.01 # the moment
      end_child(pid)
      assert_committed(reader.read)
      reader.close
    end
    change(Highball::PStore.new(@path))
    assert_equal %w[store], Dir.children(@folder), "what killed processes have left was not removed"
  end

  STEPS = {
    Highball::PStore::Temporary => %i[initialize write sync rename],
    Highball::PStore::StoreFile => %i[replace write_beside adopt sync_folder unlock]
  }.freeze
  AFTER_RENAME = [%i[after rename], :adopt, :sync_folder, %i[after write_beside], %i[after replace], :unlock].freeze

  def test_killed_at_each_step_there_is_the_old_or_the_new_state
    store = Highball::PStore.new(@path)
    STEPS.flat_map { |owner, steps| [owner].product(steps, %i[before after]) }.each do |owner, step, moment|
      before = change(store)
      killed = Process.wait2(child { |own| kill_at(owner, step, moment) && change(own) }).last
      @children.pop
      assert killed.signaled?, "#{step} was not reached"
      number = store.transaction(true) { assert_whole(store) }
      renamed = AFTER_RENAME.include?([moment, step]) || AFTER_RENAME.include?(step)
      assert_equal renamed ? before + 1 : before, number, "killed #{moment} #{step}"
      assert_equal number + 1, change(Highball::PStore.new(@path))
      assert_equal %w[store], Dir.children(@folder)
    end
  end

  # The kernel may have written only a part of the new file: so it does not count before it is renamed.
  def test_killed_in_the_middle_of_the_write_there_is_the_old_state
    store = Highball::PStore.new(@path)
    before = change(store)
    pid = child do |own|
      Highball::PStore::Temporary.prepend(Module.new do
        def write(bytes)
          super(bytes[0, bytes.bytesize / 2])
          Process.kill(:KILL, Process.pid)
        end
      end)
      change(own)
    end
    Process.wait(@children.delete(pid))
    assert_path_exists "#{@path}.new"
    assert_equal before, store.transaction(true) { assert_whole(store) }
    change(store)
    refute_path_exists "#{@path}.new"
  end

  def test_a_process_that_was_forked_in_a_transaction_changes_nothing
    reader, writer = IO.pipe
    parent = Process.pid
    store = Highball::PStore.new(@path)
    begin
      @children << store.transaction { (store[:count] = 1) && fork }
    rescue Highball::PStore::Error => e
      raise if Process.pid == parent

      writer.write(e.message)
      exit!(0)
    end
    writer.close
    assert_match(/forked in a transaction/, reader.read)
    assert_equal 1, value(:count)
  end

  def test_the_lock_ends_with_a_killed_process_though_it_has_children
    Highball::PStore.new(@path).transaction { nil }
    reader, writer = IO.pipe
    parent = child do |store|
      store.transaction do
        grandchild = fork { sleep }
        writer.syswrite([grandchild].pack("Q"))
        sleep
      end
    end
    grandchild = reader.read(8).unpack1("Q")
    end_child(parent)
    Timeout.timeout(5) { change(Highball::PStore.new(@path)) }
  ensure
    Process.kill(:KILL, grandchild) if grandchild
  end

  def test_children_use_what_the_parent_has_opened
    store = Highball::PStore.new(@path, durable: false)
    change(store)
    pids = Array.new(4) { child(store) { |own| 50.times { change(own) } } }
    50.times { change(store) }
    pids.each { |pid| Process.wait(@children.delete(pid)) }
    assert_equal 251, store.transaction(true) { assert_whole(store) }
  end

  private

  # A process that runs the block with a store.
  def child(store = nil)
    pid = fork do
      yield store || Highball::PStore.new(@path)
    ensure
      exit!(0)
    end
    @children << pid
    pid
  end

  def end_child(pid)
    return unless @children.delete(pid)

    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def value(name)
    store = Highball::PStore.new(@path)
    store.transaction(true) { store[name] }
  end

  # A transaction whose state can be checked: roots of different sizes, which belong to one number.
  def change(store)
    store.transaction do
      number = (store[:number] || 0) + 1
      store[:number] = number
      store[:text] = number.to_s * size(number)
      store[:list] = [number] * (number % 7)
      number
    end
  end

  def assert_whole(store)
    number = store[:number] || (return 0)
    assert_equal [number.to_s * size(number), [number] * (number % 7)], [store[:text], store[:list]]
    number
  end

  # (Most states are small, so that they are written over a spare.)
  def size(number) = (number % 50).zero? ? number % 3000 : number % 50

  # The last number that was reported must be there. One more may be: its commit was not reported yet.
  def assert_committed(reported)
    reported = reported[0, reported.bytesize / 8 * 8].unpack("Q*")
    store = Highball::PStore.new(@path)
    number = store.transaction(true) { assert_whole(store) }
    assert_includes [reported.last, reported.last + 1], number if reported.any?
  end

  # Starts a process for each store. Returns how often each has counted.
  def counted_by(stores, threads:)
    pipes = stores.map do |open|
      reader, writer = IO.pipe
      child { writer.syswrite([count(open.call, threads)].pack("Q")) }
      writer.close
      reader
    end
    pipes.map { |reader| reader.read.unpack1("Q") || flunk("a process failed") }
  end

  def count(store, threads)
    ends_at = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS
    Array.new(threads) { Thread.new { count_until(store, ends_at) } }.sum(&:value)
  end

  def count_until(store, ends_at)
    done = 0
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends_at
      store.transaction { store[:count] = (store[:count] || 0) + 1 }
      done += 1
    end
    done
  end
end
