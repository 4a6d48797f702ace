# frozen_string_literal: true

require_relative "../support/pstore_test_case"

# A small store that is written into its file: between two commits, others may have changed the file or its path.
class PStoreInPlaceTest < PStoreTestCase
  def setup
    super
    @store = Highball::PStore.new(@path, in_place: true, durable: false)
    @store.transaction { @store[:number] = 100 }
  end

  CHANGES = {
    same_size: ->(path) { File.binwrite(path, Marshal.dump({ number: 200 })) },
    longer: ->(path) { File.binwrite(path, Marshal.dump({ number: 200, text: "x" })) },
    empty: ->(path) { File.truncate(path, 0) },
    removed: ->(path) { File.unlink(path) },
    replaced: lambda do |path|
      File.binwrite("#{path}2", Marshal.dump({ number: 200 }))
      File.rename("#{path}2", path)
    end,
    equal_file: ->(path) { FileUtils.cp(path, "#{path}2") && File.rename("#{path}2", path) },
    mode: ->(path) { File.chmod(0o600, path) },
    other_folder: lambda do |path|
      folder = File.dirname(path)
      File.rename(folder, "#{folder}-before")
      Dir.mkdir(folder)
      File.binwrite(path, Marshal.dump({ number: 300 }))
      FileUtils.rm_rf("#{folder}-before")
    end
  }.freeze

  def test_a_commit_sees_what_others_have_changed
    CHANGES.each do |name, change|
      3.times { increment }
      change.call(@path)
      before = File.size?(@path) ? in_file.fetch(:number) : 0
      3.times { increment }
      assert_equal [before + 3] * 2, [in_file[:number], content[:number]], name
    end
  end

  def test_a_link_that_names_another_file_is_followed
    link = "#{@path}.link"
    other = "#{@path}.other"
    File.binwrite(other, Marshal.dump({ number: 500 }))
    File.symlink(@path, link)
    @store = Highball::PStore.new(link, in_place: true, durable: false)
    3.times { increment }
    File.unlink(link)
    File.symlink(other, link)
    3.times { increment }
    assert_equal [{ number: 103 }, { number: 503 }], [in_file, Marshal.load(File.binread(other))] # rubocop:disable Security/MarshalLoad
  end

  def test_a_file_that_becomes_larger_than_what_is_compared
    [10, 40_000, 20, 16_000, 17_000].each do |size|
      2.times { @store.transaction { @store[:text] = "x" * size } }
      increment
      assert_equal ["x" * size] * 2, [in_file[:text], content[:text]]
    end
    assert_equal 105, in_file[:number]
  end

  def test_a_thread_that_waits_for_the_lock_of_another_process_lets_others_run_and_can_be_killed
    3.times { increment }
    File.open(@path) do |other|
      other.flock(File::LOCK_EX)
      waiting = Thread.new { increment }
      wait_for_sleep(waiting)
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { increment } }
      waiting.kill.join
      other.flock(File::LOCK_UN)
    end
    increment
    assert_equal 104, in_file[:number]
  end

  def test_threads_and_forked_processes_lose_no_update
    3.times { increment }
    pids = Array.new(3) do
      fork do
        100.times { increment }
        exit!(0)
      end
    end
    Array.new(3) { Thread.new { 100.times { increment } } }.each(&:join)
    pids.each { |pid| assert_predicate Process.wait2(pid).last, :success? }
    assert_equal 703, in_file[:number]
  end

  def test_a_process_that_was_forked_in_a_transaction_writes_nothing
    3.times { increment }
    parent = Process.pid
    begin
      pid = @store.transaction { (@store[:number] = 1) && fork }
      exit!(1) unless Process.pid == parent
    rescue Highball::PStore::Error
      exit!(0) unless Process.pid == parent
      raise
    end
    assert_predicate Process.wait2(pid).last, :success?
    assert_equal 1, in_file[:number]
  end

  private

  def increment
    @store.transaction { @store[:number] = (@store[:number] || 0) + 1 }
  end
end
