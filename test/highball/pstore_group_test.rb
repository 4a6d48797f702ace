# frozen_string_literal: true

require_relative "../support/pstore_test_case"

# Durable commits of several threads: they share syncs, and none returns before its changes are on the disk.
class PStoreGroupTest < PStoreTestCase
  # Stops threads that sync a new file, or fails for them.
  module Gate
    class << self
      attr_accessor :reached, :answers
    end

    def sync
      return super unless Gate.reached

      Gate.reached << Thread.current
      answer = Gate.answers.pop
      raise answer if answer.is_a?(Exception)

      super
    end
    Highball::PStore::Temporary.prepend(self)
  end

  def setup
    super
    @store.transaction { @store[:log] = [] }
    Gate.answers = Queue.new
    Gate.reached = Queue.new
    @threads = []
  end

  def teardown
    Gate.reached = nil
    @threads.each { Gate.answers << :go }
    Timeout.timeout(10) { @threads.each { |thread| Thread.pass while thread.kill.alive? } }
    super
  end

  def test_commits_that_end_during_a_write_are_written_together
    leader = append(1)
    leader_syncs
    others = (2..5).map { |number| appended(number) }
    assert_equal [], content[:log], "a state that is not on the disk was read"
    assert_equal [], in_file[:log]
    Gate.answers << :go
    assert_equal :done, value(leader)
    leader_syncs
    assert_equal [1], in_file[:log]
    assert(others.all?(&:alive?), "a transaction returned before its changes were on the disk")
    Gate.answers << :go
    assert_equal [:done] * 4, values(others)
    assert_empty Gate.reached
    assert_equal [1, 2, 3, 4, 5], in_file[:log]
  end

  def test_a_commit_does_not_wait_for_the_block_of_another_transaction
    leader = append(1)
    leader_syncs
    inside = Queue.new
    second = thread { @store.transaction { inside << @store[:log] and leader.join and @store[:log] << 2 } }
    assert_equal [1], pop(inside)
    2.times { Gate.answers << :go }
    assert_equal [:done, [1, 2]], values([leader, second])
    assert_equal [1, 2], in_file[:log]
  end

  # What it has returned may be of changes that are not on the disk.
  def test_a_transaction_that_changes_nothing_waits_for_the_changes_that_it_has_seen
    append(1)
    leader_syncs
    waiting = [thread { @store.transaction { @store[:log] } },
               thread { @store.transaction { @store.abort } },
               thread { @store.transaction { raise "mine" } }]
    wait_until_finished(waiting)
    Gate.answers << :go
    assert_equal [[1], nil], values(waiting.first(2))
    assert_equal "mine", assert_raises(RuntimeError) { value(waiting.last) }.message
    assert_empty Gate.reached
  end

  def test_if_a_write_fails_all_changes_since_the_last_one_on_the_disk_fail
    leader = append(1)
    leader_syncs
    others = [appended(2), thread { @store.transaction { @store[:log].size } }]
    wait_until_finished(others)
    aborted = thread { @store.transaction { @store.abort } }
    wait_until_finished([aborted])
    Gate.answers << Errno::EIO.new("the disk")
    [leader, *others].each { |thread| assert_match(/the disk/, assert_raises(Errno::EIO) { value(thread) }.message) }
    assert_nil value(aborted)
    assert_equal [{ log: [] }] * 2, [content, in_file]
    assert_equal %w[store], Dir.children(@folder)
    Gate.answers << :go
    assert_equal :done, value(append(3))
    assert_equal [3], in_file[:log]
  end

  def test_what_is_in_a_block_when_a_write_fails_fails_too
    leader = append(1)
    leader_syncs
    inside = Queue.new
    go_on = Queue.new
    second = thread { @store.transaction { inside << 1 and go_on.pop and @store[:log] << 2 } }
    pop(inside)
    third = append(3)
    wait_for_sleep(third)
    Gate.answers << Errno::ENOSPC.new
    assert_raises(Errno::ENOSPC) { value(leader) }
    go_on << 1
    assert_raises(Errno::ENOSPC) { value(second) }
    Gate.answers << :go
    assert_equal :done, value(third)
    assert_equal [3], in_file[:log]
  end

  def test_a_value_that_cannot_be_written_fails_alone
    leader = append(1)
    leader_syncs
    wrong = thread { @store.transaction { @store[:wrong] = proc {} } }
    wait_until_finished([wrong])
    third = appended(3)
    2.times { Gate.answers << :go }
    assert_raises(TypeError) { value(wrong) }
    assert_equal %i[done done], values([leader, third])
    assert_equal [1, 3], in_file[:log]
  end

  def test_other_processes_wait_until_the_group_is_on_the_disk
    append(1)
    leader_syncs
    appended(2)
    file = File.open(@path)
    refute file.flock(File::LOCK_SH | File::LOCK_NB)
    2.times { Gate.answers << :go }
    values(@threads)
    assert File.open(@path) { |now| now.flock(File::LOCK_EX | File::LOCK_NB) }, "the file stayed locked"
  ensure
    file&.close
  end

  # So that other processes have a turn.
  def test_a_group_ends_after_some_writes
    Gate.reached = nil
    locks = 0
    count = Module.new { define_method(:lock) { |*arguments| (locks += 1) && super(*arguments) } }
    @store.instance_variable_get(:@file).singleton_class.prepend(count)
    4.times { |number| thread { 50.times { @store.transaction { @store[:log] << number } } } }
    values(@threads)
    assert_equal 200, in_file[:log].size
    assert_operator locks, :>=, 200 / 4 / Highball::PStore::Group::MOST_WRITES
  end

  def test_a_process_that_is_forked_during_a_write_has_the_state_of_the_file
    leader = append(1)
    leader_syncs
    reader, writer = IO.pipe
    pid = fork do
      Gate.reached = nil
      writer.write(Marshal.dump([content, @store.transaction { @store[:log] << 9 }]))
      exit!(0)
    end
    writer.close
    Gate.answers << :go
    assert_equal :done, value(leader)
    assert_equal [{ log: [1] }, [1, 9]], Timeout.timeout(10) { Marshal.load(reader.read) } # rubocop:disable Security/MarshalLoad
    Process.wait(pid)
    assert_equal({ log: [1, 9] }, content)
  end

  # The leader is killed with all threads that wait for it.
  def test_killed_while_others_wait_nothing_that_was_reported_is_lost
    (ENV["HIGHBALL_TEST_LEVEL"] == "full" ? 1000 : 50).times do
      reader, writer = IO.pipe
      pid = fork do
        Gate.reached = nil
        store = Highball::PStore.new(@path)
        Array.new(6) { |thread| Thread.new { loop { writer.syswrite([appended_by(store, thread)].pack("Q")) } } }
        sleep
      end
      writer.close
      reader.read(8)
      sleep rand * 0.01 # the moment
      Process.kill(:KILL, pid)
      Process.wait(pid)
      reported = reader.read.unpack("Q*")
      log = Marshal.load(File.binread(@path))[:log] # rubocop:disable Security/MarshalLoad
      assert_equal [], reported - log
      assert_equal log.uniq, log
      reader.close
    end
  end

  private

  # A number that no other transaction has.
  def appended_by(store, thread)
    number = (rand(1 << 40) * 10) + thread
    store.transaction { store[:log] << number }
    number
  end

  def thread(&block)
    thread = Thread.new(&block)
    thread.report_on_exception = false
    @threads << thread
    thread
  end

  def append(number)
    thread { @store.transaction { @store[:log] += [number] } && :done }
  end

  # Returns when the block of the transaction has ended.
  def appended(number)
    append(number).tap { |thread| wait_until_finished([thread]) }
  end

  # They wait for the disk, not for their turn.
  def wait_until_finished(threads)
    threads.each { |thread| wait_for_sleep(thread) }
    lock = @store.instance_variable_get(:@lock)
    Timeout.timeout(5) { Thread.pass while lock.locked? }
  end

  def leader_syncs = pop(Gate.reached)
  def pop(queue) = Timeout.timeout(10) { queue.pop }
  def values(threads) = threads.map { |thread| value(thread) }
  def value(thread) = Timeout.timeout(10) { thread.value }
end
