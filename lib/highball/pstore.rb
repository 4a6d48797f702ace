# frozen_string_literal: true

require_relative "pstore/store_file"
require_relative "pstore/snapshot"
require_relative "pstore/group"

# An application server for Ruby, and what comes with it.
module Highball
  # A hash in a file, changed by transactions: Ruby's PStore, with the same methods and the same files. It needs no
  # gem and no server:
  #
  #     require "highball/pstore"
  #
  #     store = Highball::PStore.new("wiki.pstore")
  #     store.transaction { store[:pages] = { "Home" => "Welcome" } }
  #     store.transaction(true) { store[:pages]["Home"] } # => "Welcome"
  #
  # What differs from Ruby's:
  #
  # - A commit replaces the file in one step: a reader, and the next process after a crash, find the old or the new
  #   state. By default the new state is on the disk before #transaction returns.
  # - Processes and threads exclude each other. No update is lost.
  # - A file that has not changed is not read again, and unchanged data is not written. A transaction copies only the
  #   roots that it uses.
  #
  # Parts, in reading order: StoreFile (lock, read and replace the file), Stamp (whether it has changed), Snapshot (what
  # is known of it), WholeTable, RootReader and RootTable (what a transaction sees), Entry (one root), Plain (copies
  # small values), Layout and MarshalScan (the file as pieces), Temporary and Spare (the files that take the store's
  # place), Group (commits of several threads). docs/pstore.md has the guarantees and their limits.
  class PStore
    # The error of all methods, as far as it is none of the file system or of Marshal.
    class Error < StandardError; end

    # Larger files are read in each transaction, because what is kept in memory is larger than the file.
    MOST_KEPT_BYTES = 64 * 1024 * 1024
    # Transactions that find the file unchanged, after which its table is divided into roots. That takes about as long
    # as loading it four times: it is worth it for files that change seldom, or only here.
    UNCHANGED_BEFORE_DIVIDED = 4
    # A transaction that may change a smaller file loads all of its table: that takes less time than comparing roots.
    SMALL_BYTES = 256
    NEVER = { Object => :never }.freeze
    private_constant :NEVER

    # The path of the file, as given.
    attr_reader :path

    # Ruby's PStore replaces its file only if this is true. This one always does; the attribute is for compatible code.
    attr_accessor :ultra_safe

    # Opens no file yet. The folder must exist; the first transaction that may write creates the file.
    #
    # thread_safe:: Threads wait for each other's transactions. If false, the second one gets an Error at once, which
    #               is the default of Ruby's PStore.
    # durable::     A commit is on the disk when #transaction returns (two fsyncs). If false, it survives a crash of
    #               the process, but the system writes it to the disk later: after a power failure the file may have
    #               an older state, or with some file systems be empty.
    # in_place::    Write into the file as Ruby's PStore does, instead of replacing it. For files that Ruby's PStore
    #               changes at the same time, and for folders in which no file can be created. A crash or a full disk
    #               during the write can leave a file that cannot be read.
    def initialize(file, thread_safe = true, durable: true, in_place: false) # rubocop:disable Style/OptionalBooleanParameter
      folder = File.dirname(file)
      raise Error, "directory #{folder} does not exist" unless File.directory?(folder)
      raise Error, "file #{file} not readable" if File.exist?(file) && !File.readable?(file)

      @path = file
      @file = StoreFile.new(file, durable: durable, in_place: in_place, spare: true)
      @thread_safe = thread_safe
      @marshal = self.class.instance_method(:dump).owner.equal?(PStore)
      @ultra_safe = true
      @lock = Thread::Mutex.new
      @grouping = durable && thread_safe
      @thread = @table = @snapshot = @group = nil
    end

    # Runs the block in a transaction, and returns its value. At the end, the changes are written, unless #abort was
    # called or the block was left in another way: by an exception, `break`, `throw`, Thread#kill.
    #
    # read_only:: Changes raise an Error. Several processes can read at the same time. The block sees the state at its
    #             beginning; writers need not wait for it. A missing file is an empty store.
    #
    # Transactions of the same store cannot be nested; those of different stores can.
    def transaction(read_only = false, &block) # rubocop:disable Style/OptionalBooleanParameter
      lock = @lock
      raise Error, "nested transaction" if lock.owned?

      begin
        raise Error, "nested transaction" unless @thread_safe ? lock.lock : lock.try_lock

        @thread = Thread.current
        @read_only = read_only
        @aborted = false
        # If the file is as this process knows it, nothing is read from it, so no lock is needed.
        return locked(&block) unless read_only && (snapshot = @group ? group_snapshot : current_snapshot)

        entries = snapshot.entries
        @table = entries ? RootReader.new(entries) : known_table(snapshot)
        catch(self, &block)
      ensure
        if lock.owned?
          @table = @thread = nil
          lock.unlock
        end
      end
    end

    # The value of this root, or nil. Changes of the value are written at the end of the transaction.
    def [](name)
      # (`table` does the same in more time.)
      raise Error, "not in transaction" unless @thread == Thread.current

      @table[name]
    end

    # The value of this root, or the default, or an Error.
    def fetch(name, default = Error)
      return table[name] if table.key?(name)
      raise Error, "undefined root name `#{name}'" if default == Error

      default
    end

    # Sets the value of a root.
    def []=(name, value)
      writable_table[name] = value
    end

    # Removes a root, and returns its value.
    def delete(name)
      writable_table.delete(name)
    end

    # The names of all roots.
    def keys
      table.keys
    end
    alias roots keys

    # Whether there is a root of this name.
    def key?(name)
      table.key?(name)
    end
    alias root? key?

    # Ends the transaction, and writes its changes.
    def commit
      table
      @aborted = false
      throw self
    end

    # Ends the transaction without its changes.
    def abort
      table
      @aborted = true
      throw self
    end

    # Puts this class in the place of ::PStore, and below YAML::Store, for code that cannot be changed. Call it before
    # other code uses the constant: classes that already inherit from Ruby's PStore stay as they are.
    #
    # durable:: for all stores that are opened by the name PStore; see ::new
    def self.install!(durable: true)
      require "pstore"
      Installed.durable = durable
      return ::PStore if ::PStore <= self

      Object.__send__(:remove_const, :PStore)
      Object.const_set(:PStore, Installed)
      if defined?(::YAML::Store)
        ::YAML.__send__(:remove_const, :Store)
        load "yaml/store.rb"
      end
      ::PStore
    end

    private

    # The state of the file, nil if it must be read to know it.
    def current_snapshot = @snapshot && @file.current? ? @snapshot : nil

    # The state on the disk, while a group has locked the file.
    def group_snapshot
      group = self.group
      group ? (group.committed unless group.error) : current_snapshot
    end

    # The transactions of other threads, whose changes are being written. (In a forked process there are none.)
    def group
      @group = nil if @group && @file.forked?
      @group
    end

    # A transaction that locks the file. Its value is nil if #commit or #abort ended it.
    def locked(&block)
      complete = @locking = false
      @table = begin_locked
      value = catch(self, &block)
      complete = true
      value
    ensure
      Thread.handle_interrupt(NEVER) { finish(complete && !@aborted && !@read_only) }
    end

    # The table of the locked file, or of the last transaction of a group.
    def begin_locked
      if (group = self.group)
        return known_table(group.latest) if !@read_only && group.enter

        group.wait_until_closed
      end
      @locking = true
      return WholeTable.new({}, nil) unless @file.lock(!@read_only)

      table = read_table
      begin_group if @grouping && @snapshot && !@read_only
      table
    end

    def begin_group
      @group = Group.new(@snapshot)
      @snapshot = nil
    end

    def finish(with_changes)
      return leave_group(with_changes) if @group&.inside?
      return unless @locking

      begin
        save if with_changes
      ensure
        @file.unlock
      end
    end

    # Ends the transaction, and waits until its changes, and all that it may have seen, are on the disk.
    def leave_group(with_changes)
      return leave_forked(with_changes) if @file.forked?

      group = @group
      begin
        bytes, snapshot = next_state(group.latest) if with_changes
      ensure
        number = group.leave(bytes, snapshot)
        @table = @thread = nil
        @lock.unlock
        close_group(group) if group.settle(number) { |new| @file.replace(new) }
      end
      raise group.error.exception(group.error.message) if with_changes && group.error && !group.durable?(number)
    end

    def close_group(group)
      @snapshot = group.committed unless group.error || group.committed.bytesize > MOST_KEPT_BYTES
      @file.unlock
    ensure
      @group = nil
      group.closed
    end

    def table
      raise Error, "not in transaction" unless @thread == Thread.current

      @table
    end

    def writable_table
      raise Error, "in read-only transaction" if table && @read_only

      @table
    end

    def read_table
      return known_table(@snapshot) if @snapshot && @file.unchanged?

      bytes = @file.read
      table = parse(bytes)
      @snapshot = bytes.bytesize <= MOST_KEPT_BYTES ? Snapshot.new(bytes) : nil
      WholeTable.new(table, bytes)
    end

    # The table of an unchanged file, which is not read again.
    def known_table(snapshot)
      snapshot.table(@read_only) { |bytes| parse(bytes) }
    end

    def parse(bytes)
      return {} if bytes.empty? # a new file

      table = load(bytes)
      raise Error, "PStore file seems to be corrupted." unless table.is_a?(Hash)

      table
    end

    def save
      refuse_forked if @file.forked?

      before = @snapshot
      bytes, entries, layout = @table.changes { |table| dump(table) }
      return unless bytes

      snapshot = entries || before.nil? ? snapshot_after(before, bytes, entries, layout) : before
      # (It stays forgotten if writing fails: then the next transaction reads the file.)
      @snapshot = nil
      @file.replace(bytes)
      return if bytes.bytesize > MOST_KEPT_BYTES

      snapshot.renew(bytes) if snapshot.equal?(before)
      @snapshot = snapshot
    end

    def snapshot_after(before, bytes, entries, layout)
      Snapshot.new(bytes, entries, layout, before: before, marshal: @marshal)
    end

    # The bytes of the new file, and its snapshot. Nil if nothing has changed.
    def next_state(before)
      bytes, entries, layout = @table.changes { |table| dump(table) }
      [bytes, snapshot_after(before, bytes, entries, layout)] if bytes
    end

    # The group stays the parent's.
    def leave_forked(with_changes)
      @group = nil
      @file.unlock
      refuse_forked if with_changes
    end

    def refuse_forked
      raise Error, "the process was forked in a transaction: the changes here are not written"
    end

    # The format of the file. Subclasses such as YAML::Store have others.
    def dump(table)
      Marshal.dump(table)
    end

    # The table of a file.
    def load(content)
      Marshal.load(content) # rubocop:disable Security/MarshalLoad
    end
  end

  # What PStore.install! puts in the place of ::PStore: threads do not wait unless asked to, as there.
  class PStore::Installed < PStore # :nodoc: # rubocop:disable Style/ClassAndModuleChildren
    class << self
      attr_accessor :durable
    end

    def initialize(file, thread_safe = false) # rubocop:disable Style/OptionalBooleanParameter
      super(file, thread_safe, durable: Installed.durable)
    end
  end

  autoload :YAMLStore, File.expand_path("yaml_store.rb", __dir__)
end
