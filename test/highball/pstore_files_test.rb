# frozen_string_literal: true

require "minitest/mock"
require_relative "../support/pstore_test_case"

# The file of a PStore: when it is read and written, its mode and owner, full disks.
class PStoreFilesTest < PStoreTestCase
  def test_files_that_are_no_stores
    File.binwrite(@path, "no store")
    assert_raises(TypeError) { @store.transaction { nil } }
    File.binwrite(@path, Marshal.dump([1]))
    assert_match(/corrupted/, assert_raises(Highball::PStore::Error) { @store.transaction { nil } }.message)
    File.unlink(@path)
    File.mkfifo(@path)
    [true, false].each do |read_only|
      error = assert_raises(Highball::PStore::Error) { Timeout.timeout(5) { @store.transaction(read_only) { nil } } }
      assert_match(/not a regular file/, error.message)
    end
    assert_match(/does not exist/, assert_raises(Highball::PStore::Error) do
                                     Highball::PStore.new("/nowhere/x")
                                   end.message)
  end

  def test_unchanged_data_is_not_written_and_unchanged_files_are_not_read
    @store.transaction { @store[:a] = [1] and @store[:b] = "x" }
    inode = File.stat(@path).ino
    5.times do
      @store.transaction { [@store[:a], @store[:b]] }
      @store.transaction { @store[:a] = [1] }
      @store.transaction { @store[:b] = +"x" }
    end
    assert_equal inode, File.stat(@path).ino
    reads = []
    TracePoint.new(:c_call) { |call| reads << call.method_id if %i[pread read].include?(call.method_id) }.enable do
      5.times { @store.transaction(true) { @store[:a] } }
    end
    assert_empty reads
  end

  def test_reading_an_unchanged_file_takes_no_lock_and_any_change_is_seen
    @store.transaction { @store[:a] = { number: 1 } }
    3.times { content }
    File.open(@path) do |other|
      other.flock(File::LOCK_EX)
      Timeout.timeout(5) { assert_equal({ a: { number: 1 } }, content) }
      reading = Thread.new { File.chmod(0o600, @path) && content } # another change time
      wait_for_sleep(reading)
      other.flock(File::LOCK_UN)
      assert_equal({ a: { number: 1 } }, reading.value)
    end
    change_in_place({ a: { number: 2 } })
    assert_equal({ a: { number: 2 } }, content)
  end

  # (Another machine's change may be seen late there.)
  def test_a_file_that_may_be_on_another_machine_is_locked_to_be_read
    @store.transaction { @store[:a] = 1 }
    Highball::PStore::Stamp.stub(:local?, false) do
      store = Highball::PStore.new(@path)
      settle
      2.times { content(store) }
      File.open(@path) do |other|
        other.flock(File::LOCK_EX)
        reading = Thread.new { content(store) }
        wait_for_sleep(reading)
        other.flock(File::LOCK_UN)
        assert_equal({ a: 1 }, reading.value)
      end
    end
  end

  def test_which_file_systems_are_of_this_machine
    local = ->(path) { Highball::PStore::Stamp.local?(File.stat(path)) }
    assert local.call("/dev/shm") if File.directory?("/dev/shm")
    refute local.call("/proc/self")
  end

  # While the time of the file does not tell, the bytes are compared.
  def test_changes_of_the_same_size_within_a_tick_are_seen
    in_place = Highball::PStore.new(@path, in_place: true, durable: false)
    200.times do |number|
      value = 100 + (number % 50)
      (number.even? ? in_place : @store).transaction { |store| store[:a] = value }
      assert_equal({ a: value }, content(in_place))
      change_in_place({ a: value + 1 })
      assert_equal([{ a: value + 1 }] * 2, [content(in_place), content])
    end
  end

  def test_a_file_that_is_removed_replaced_or_emptied_is_seen
    @store.transaction { @store[:a] = 1 }
    File.unlink(@path)
    assert_equal({}, content)
    @store.transaction { @store[:a] = 2 }
    File.binwrite("#{@path}2", Marshal.dump({ a: 3 }))
    File.rename("#{@path}2", @path)
    assert_equal({ a: 3 }, content)
    File.truncate(@path, 0)
    assert_equal({}, content)
  end

  def test_mode_owner_and_links_are_kept
    target = File.join(@folder, "target")
    File.symlink("target", @path)
    @store.transaction { @store[:a] = 1 }
    File.chmod(0o640, target)
    File.chown(65_534, 65_534, target) if Process.uid.zero?
    @store.transaction { @store[:a] = 2 }
    assert File.symlink?(@path)
    stat = File.stat(target)
    assert_equal 0o640, stat.mode & 0o7777
    assert_equal [65_534, 65_534], [stat.uid, stat.gid] if Process.uid.zero?
    assert_equal %w[store target], Dir.children(@folder).sort
  end

  def test_the_new_file_is_never_written_through_a_planted_link
    victim = File.join(@folder, "victim")
    File.binwrite(victim, "precious")
    File.symlink(victim, "#{@path}.new")
    @store.transaction { @store[:a] = 1 }
    assert_equal "precious", File.binread(victim)
    assert_equal({ a: 1 }, in_file)
    assert_equal %w[store victim], Dir.children(@folder).sort
  end

  def test_what_a_user_may_not_write_is_reported
    @store.transaction { @store[:a] = 1 }
    as_nobody do
      FileUtils.chmod(0o444, @path)
      assert_equal({ a: 1 }, content)
      assert_raises(Errno::EACCES) { @store.transaction { @store[:a] = 2 } }
      FileUtils.chmod(0o644, @path)
      FileUtils.chmod(0o555, @folder)
      error = assert_raises(Errno::EACCES) { @store.transaction { @store[:a] = 2 } }
      assert_match(/in_place/, error.message)
      in_place = Highball::PStore.new(@path, in_place: true)
      in_place.transaction { in_place[:a] = 3 }
      assert_equal({ a: 3 }, content)
    end
  end

  def test_a_full_disk_leaves_the_old_state
    on_small_disk do |folder|
      store = Highball::PStore.new(File.join(folder, "store"))
      store.transaction { store[:a] = "x" * 20_000 }
      3.times { assert_raises(Errno::ENOSPC) { store.transaction { store[:a] = "y" * 100_000 } } }
      assert_equal({ a: "x" * 20_000 }, content(store))
      assert_equal %w[store], Dir.children(folder)
      store.transaction { store[:a] = "z" }
      assert_equal({ a: "z" }, content(store))
    end
  end

  def test_in_place_the_file_stays_the_same
    store = Highball::PStore.new(@path, in_place: true)
    store.transaction { store[:a] = "x" * 5000 }
    inode = File.stat(@path).ino
    ["y", "z" * 9000, "", [1]].each do |value|
      store.transaction { store[:a] = value }
      assert_equal [{ a: value }, { a: value }], [content(store), in_file]
    end
    assert_equal inode, File.stat(@path).ino
  end

  def test_large_stores_are_not_kept_in_memory
    with_constant(Highball::PStore, :MOST_KEPT_BYTES, 1000) do
      3.times { |number| @store.transaction { @store[:a] = number.to_s * 2000 } }
      assert_equal({ a: "2" * 2000 }, content)
      assert_nil @store.instance_variable_get(:@snapshot)
    end
  end

  def test_open_files_are_bounded
    before = Dir.children("/proc/self/fd").length
    stores = Array.new(200) { |number| Highball::PStore.new("#{@path}#{number}", durable: false) }
    2.times { stores.each { |store| store.transaction { store[:a] = (store[:a] || 0) + 1 } } }
    assert_operator Dir.children("/proc/self/fd").length - before, :<=, Highball::PStore::OpenFiles::MOST
    assert(stores.all? { |store| content(store) == { a: 2 } })
  end

  private

  # As Ruby's PStore does it.
  def change_in_place(table)
    File.open(@path, File::RDWR) do |file|
      file.flock(File::LOCK_EX)
      file.binmode.write(Marshal.dump(table))
    end
  end

  # Runs the block with the rights of an ordinary user.
  def as_nobody
    return yield unless Process.uid.zero?

    File.chown(65_534, 65_534, @folder, @path)
    begin
      Process::Sys.setegid(65_534)
      Process::Sys.seteuid(65_534)
      yield
    ensure
      Process::Sys.seteuid(0)
      Process::Sys.setegid(0)
    end
  end

  def on_small_disk
    skip "only root can mount a small disk" unless Process.uid.zero?
    folder = File.join(@folder, "disk")
    Dir.mkdir(folder)
    skip "cannot mount here" unless system("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder, err: File::NULL)
    begin
      yield folder
    ensure
      system("umount", "--lazy", folder)
    end
  end

  def with_constant(owner, name, value)
    before = owner.const_get(name)
    owner.__send__(:remove_const, name)
    owner.const_set(name, value)
    yield
  ensure
    owner.__send__(:remove_const, name)
    owner.const_set(name, before)
  end
end
