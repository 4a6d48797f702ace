# frozen_string_literal: true

require "minitest/mock"
require "socket"
require_relative "../support/kill_at"
require_relative "../support/pstore_test_case"

# So that a slow machine does not matter.
Highball::PStore::Spare.__send__(:remove_const, :SECONDS)
Highball::PStore::Spare::SECONDS = 3600.0

# The second file of a store that is changed often: which file a commit may write over, and what others see of it.
class PStoreSpareTest < PStoreTestCase # rubocop:disable Metrics/ClassLength
  include KillAt

  Spare = Highball::PStore::Spare
  Exchange = Highball::PStore::Exchange

  def setup
    super
    @spare = File.join(@folder, ".store.highball-spare")
  end

  def test_commits_use_two_files_in_turn
    each_store do |store|
      files = inodes
      10.times do
        number = change(store)
        assert_equal files.reverse!, inodes
        rubys = PStore.new(@path)
        assert_equal number, rubys.transaction(true) { rubys[:number] }
        assert_equal [{ number: number }] * 2, [content(store), in_file]
      end
    end
  end

  def test_few_commits_and_late_commits_leave_no_spare
    Spare::COMMITS_BEFORE.times { change }
    assert_equal %w[store], Dir.children(@folder)
    make_spare
    late = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Spare::SECONDS + 1
    Process.stub(:clock_gettime, late) { change }
    assert_equal %w[store], Dir.children(@folder)
  end

  MAKE_SPARE = <<~RUBY
    store = Highball::PStore.new(ARGV[0])
    20.times { |number| store.transaction { store[:number] = number } }
    puts Dir.children(File.dirname(ARGV[0])).sort
  RUBY

  def test_a_process_that_ends_and_a_store_that_is_garbage_leave_no_spare
    command = [RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-r", "highball/pstore", "-e", MAKE_SPARE]
    assert_equal %w[.store.highball-spare store], IO.popen([*command, @path], &:readlines).map(&:chomp)
    assert_equal %w[store], Dir.children(@folder)
    make_spare
    in_child { spare.instance_variable_get(:@place).remover.call } # the spare is the parent's
    assert_path_exists @spare
    spare.instance_variable_get(:@place).remover.call # the finalizer
    assert_equal %w[store], Dir.children(@folder)
  end

  # Another program has opened the file when it was the store. It sees the state of that moment, also without a lock.
  def test_a_file_that_another_has_open_is_never_written_over
    [File::LOCK_UN, File::LOCK_SH].each do |lock|
      each_store do |store|
        bytes = File.binread(@path)
        read = read_when_opened(lock) { change(store) }
        assert_equal bytes, read
        assert_equal content(store), in_file
      end
    end
  end

  def test_programs_that_take_no_lock_read_whole_states
    change
    writer = fork do
      loop { Highball::PStore.new(@path, durable: false).tap { |store| 500.times { change(store) } } }
    end
    2000.times { assert_equal [:number], Marshal.load(File.binread(@path)).keys } # rubocop:disable Security/MarshalLoad
  ensure
    Process.kill(:KILL, writer)
    Process.wait(writer)
  end

  HOSTILE = {
    link: ->(path, victim) { File.symlink(victim, path) },
    hard_link: ->(path, victim) { File.link(victim, path) },
    fifo: ->(path, _) { File.mkfifo(path) },
    folder: ->(path, _) { Dir.mkdir(path) },
    file: ->(path, _) { File.binwrite(path, "other") }
  }.freeze

  def test_what_another_has_put_in_the_place_of_the_spare_is_not_written_or_made_the_store
    victim = File.join(@folder, "victim")
    HOSTILE.each do |name, put|
      each_store do |store|
        File.binwrite(victim, "precious")
        File.unlink(@spare)
        put.call(@spare, victim)
        20.times { change(store) && assert_equal(content(store), in_file, name) }
        assert_equal ["precious", 1], [File.binread(victim), File.stat(victim).nlink], name unless name == :hard_link
        assert_equal "precious", File.binread(victim), name
      end
    end
  end

  def test_a_spare_whose_attributes_have_changed_is_not_used
    changes = [-> { File.chmod(0o640, @spare) }, -> { File.link(@spare, "#{@spare}.link") },
               -> { File.utime(Time.now, Time.now - 9, @spare) }, -> { File.binwrite(@spare, "x") }]
    changes << -> { File.chown(65_534, 65_534, @spare) } if Process.uid.zero?
    changes.each do |change_spare|
      each_store do |store|
        change_spare.call
        change(store)
        refute_path_exists @spare
        assert_equal content(store), in_file
      end
    end
  end

  # One commit later, its ACL or other name would be the store's again.
  def test_a_store_whose_attributes_have_changed_does_not_become_a_spare
    each_store do |store|
      other_name = "#{@path}.backup"
      File.link(@path, other_name)
      bytes = File.binread(other_name)
      File.chmod(0o600, @path)
      change(store)
      make_spare(store)
      assert_equal bytes, File.binread(other_name)
      refute_includes inodes, File.stat(other_name).ino
      assert_equal([0o600] * 2, [@path, @spare].map { |path| File.stat(path).mode & 0o777 })
    end
  end

  def test_the_commit_of_another_process_ends_the_use_of_the_spare
    each_store do |store|
      in_child { change(Highball::PStore.new(@path)) }
      number = change(store)
      assert_equal [{ number: number }] * 2, [content(store), in_file]
      assert_equal %w[store], Dir.children(@folder)
    end
  end

  # A power failure could leave a part of several blocks, or a state with the size of another.
  def test_if_not_durable_a_spare_is_one_block_and_keeps_its_size
    block = "x" * Spare::MOST_BYTES
    [["x" * 60, "y" * 60], ["x" * 60, "y" * 61], ["x" * 60, "y" * 59], [block, block.next]].each do |old, new|
      each_store(durable: [false]) do |store|
        30.times { change(store, old) }
        before = File.exist?(@spare) && File.stat(@spare).ino
        change(store, new)
        assert_equal [new] * 2, [content(store)[:text], in_file[:text]]
        used = File.exist?(@spare) && before != File.stat(@spare).ino
        assert_equal new.size == old.size && new.size < Spare::MOST_BYTES, used, new.size
      end
    end
  end

  def test_if_durable_a_shorter_state_is_written_over_a_longer_one
    each_store(durable: [true]) do |store|
      ["x" * 9000, "y" * 40, "z" * 9000].each do |text|
        3.times { change(store, text) && assert_equal([text] * 2, [in_file[:text], content(store)[:text]]) }
        assert_equal File.size(@path), Marshal.dump(in_file).bytesize
      end
    end
  end

  def test_without_the_system_call_each_commit_makes_a_file
    each_store do |store|
      Exchange.stub(:call, false) { 20.times { change(store) } }
      assert_equal content(store), in_file
      assert_equal %w[store], Dir.children(@folder)
    end
    Exchange.stub(:require, ->(*) { raise LoadError }) { assert_equal false, Exchange.__send__(:find) }
  end

  def test_a_link_is_followed
    File.symlink("target", @path)
    20.times { change }
    assert File.symlink?(@path)
    assert_equal %w[.target.highball-spare store target], Dir.children(@folder).sort
    assert_equal content, in_file
  end

  def test_a_sync_that_fails_leaves_the_old_state
    make_spare
    before = in_file
    spare.instance_variable_get(:@io).stub(:fdatasync, -> { raise Errno::EIO }) do
      assert_raises(Errno::EIO) { change }
    end
    assert_equal [before] * 2, [content, in_file]
    assert_equal %w[store], Dir.children(@folder)
    assert_equal({ number: change }, in_file)
  end

  def test_a_store_in_another_format_is_written_over
    require "highball/yaml_store"
    store = Highball::YAMLStore.new(@path)
    ["x" * 900, "y" * 40].each do |text|
      10.times { change(store, text) }
      assert_path_exists @spare
      assert_equal content(store), YAML.load_file(@path, permitted_classes: [Symbol])
    end
  end

  STORE_FILE = Highball::PStore::StoreFile
  STEPS = { Spare => %i[swap usable? written_over write taken], Exchange.singleton_class => %i[call],
            STORE_FILE => %i[adopt sync_folder unlock] }.freeze
  AFTER_EXCHANGE = [%i[after call], %i[after written_over], %i[after swap],
                    :taken, :adopt, :sync_folder, :unlock].freeze

  def test_killed_at_each_step_there_is_the_old_or_the_new_state
    STEPS.flat_map { |owner, steps| [owner].product(steps, %i[before after]) }.each do |owner, step, moment|
      reader, writer = IO.pipe
      killed = in_child do
        store = Highball::PStore.new(@path)
        make_spare(store)
        writer.syswrite([content(store)[:number]].pack("Q"))
        kill_at(owner, step, moment)
        change(store)
      end
      assert_predicate killed, :signaled?, "#{step} was not reached"
      before = reader.read(8).unpack1("Q")
      exchanged = AFTER_EXCHANGE.include?(step) || AFTER_EXCHANGE.include?([moment, step])
      assert_equal({ number: exchanged ? before + 1 : before }, in_file, "killed #{moment} #{step}")
      assert_equal({ number: change(Highball::PStore.new(@path)) }, in_file)
      assert_equal %w[store], Dir.children(@folder), "the spare of a killed process was left"
    end
  end

  # The kernel may have written a part of the spare. The store does not depend on it.
  def test_killed_in_the_middle_of_the_write_there_is_the_old_state
    make_spare
    before = in_file
    killed = in_child do
      store = Highball::PStore.new(@path)
      make_spare(store)
      kill_at(Spare, :write, :after) { |bytes| bytes[0, bytes.bytesize / 2] }
      change(store)
    end
    assert_predicate killed, :signaled?
    assert_raises(ArgumentError) { Marshal.load(File.binread(@spare)) } # rubocop:disable Security/MarshalLoad
    assert_operator in_file[:number], :>, before[:number]
    number = change
    assert_equal [{ number: number }] * 2, [content, in_file]
    assert_equal %w[store], Dir.children(@folder)
  end

  private

  # Stores, durable and not, that have a spare.
  def each_store(durable: [true, false])
    durable.each do |value|
      FileUtils.rm_rf(Dir.children(@folder).map { |name| File.join(@folder, name) })
      store = Highball::PStore.new(@path, durable: value)
      make_spare(store)
      yield store
    end
  end

  # Commits until there is a spare that has been used.
  def make_spare(store = @store)
    (3 * Spare::COMMITS_BEFORE).times { change(store) }
    assert_path_exists @spare
  end

  def change(store = @store, text = nil)
    store.transaction do
      store[:text] = text if text
      store[:number] = (store[:number] || 1000) + 1
    end
  end

  def spare(store = @store) = store.instance_variable_get(:@file).instance_variable_get(:@spare)
  def inodes = [@path, @spare].map { |path| File.stat(path).ino }

  # What a process reads from a file that it has opened before five calls of the block, and locked after the first.
  def read_when_opened(lock, &block)
    here, there = UNIXSocket.pair
    pid = fork do
      file = File.open(@path).binmode
      there.write("!")
      there.read(1)
      file.flock(lock)
      there.write("!")
      there.read(1)
      there.write(file.read)
      exit!(0)
    end
    there.close
    here.read(1)
    yield
    here.write("!")
    here.read(1)
    4.times(&block)
    here.write("!")
    here.binmode.read
  ensure
    Process.wait(pid)
  end

  # How a process ends that runs the block.
  def in_child
    pid = fork do
      yield
      exit!(0)
    end
    Process.wait2(pid).last
  end
end
