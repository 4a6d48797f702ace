# frozen_string_literal: true

require_relative "exchange"
require_relative "open_files"
require_relative "stamp"
require_relative "temporary"

module Highball
  class PStore
    # A second file beside a small store that one process changes often. A commit writes over it, and the two files
    # change their names in one step: no file is created or freed, which would take most of a commit's time.
    #
    # What was the store becomes the next commit's spare. A program that has opened it earlier still finds a whole state
    # there, because a commit writes only over a file that
    #
    # - this process has written, and nothing has changed since, also no mode, owner, ACL or link,
    # - no other process has open, or can open meanwhile (a lease of fcntl(2)).
    #
    # In all other cases, the commit creates a file and renames it. After some of them, it makes a spare again.
    class Spare
      # Commits of this process without another's between them, each at most SECONDS after the last, before a spare is
      # made. If a spare is of no use, the next one is made after twice as many.
      COMMITS_BEFORE = 4
      MOST_COMMITS_BEFORE = 1024
      SECONDS = 1.0
      # A spare that was used this often was worth it.
      USES_WORTH_IT = 64

      # If the store is not durable, what is written over a spare is not on the disk when it gets its new name. So it
      # must be one block: a power failure leaves the old or the new one. It must keep its size, because the disk may
      # get the size before the block, or after it.
      MOST_BYTES = 4096
      MOST_DURABLE_BYTES = 64 * 1024

      # Values of fcntl(2) on Linux.
      F_SETSIG = 10
      F_SETLEASE = 1024
      WRITE_LEASE = 1
      NO_LEASE = 2
      # Comes to a process that has a lease on a file that another one wants to open, and is ignored.
      SIGNAL = Signal.list["URG"]
      private_constant :F_SETSIG, :F_SETLEASE, :WRITE_LEASE, :NO_LEASE, :SIGNAL

      # The name of the spare, and which file this process has there.
      Place = Struct.new(:path, :stat, :process) do
        # Removes the file, unless another one has its name now, or it is the parent's.
        def remove
          return unless stat && process.equal?(OpenFiles.process)

          now = File.lstat(path)
          File.unlink(path) if now.ino == stat.ino && now.dev == stat.dev
        rescue SystemCallError
          nil
        ensure
          self.stat = nil
        end

        # Also removes what another process has there: it was killed, or its spare is of no use after the next commit.
        def clear
          self.stat = nil
          File.unlink(path) if File.lstat(path).file?
        rescue SystemCallError
          nil
        end

        # For a finalizer.
        def remover = proc { remove }
      end
      private_constant :Place

      # owner:: StoreFile; when it is garbage, and when the process ends, the spare is removed
      def initialize(owner, durable:)
        @durable = durable
        @most_bytes = durable ? MOST_DURABLE_BYTES : MOST_BYTES
        @target = @io = nil
        @commits = @uses = 0
        @pause = COMMITS_BEFORE
        @last = -Float::INFINITY
        @place = Place.new
        ObjectSpace.define_finalizer(owner, @place.remover)
      end

      # Makes these bytes those of the store. Returns its new file, locked. Nil if it must be replaced in another way.
      #
      # target::    the store's path, not a link
      # store::     its file, locked
      # stat::      its attributes
      # untouched:: whether it is as the last commit of this process has left it
      def swap(target, bytes, store, stat, untouched)
        aim(target) unless target == @target
        return unless worth_it?(untouched) && bytes.bytesize <= @most_bytes

        if @io
          usable?(stat, bytes) ? written_over(bytes, store) : give_up
        elsif @commits > @pause
          created(bytes, store, stat)
        end
      end

      # Removes the file.
      def discard
        @place.remove
        close
      end

      private

      def aim(target)
        discard
        @target = target
        @place.path = File.join(File.dirname(target), ".#{File.basename(target)}.highball-spare")
      end

      def close
        io = @io
        @io = nil
        io.close if io && !io.closed?
      end

      def worth_it?(untouched)
        last = @last
        @last = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return @commits += 1 if untouched && @last - last <= SECONDS

        set_pause if @io && !untouched
        @commits = 0
        @place.clear
        close
      end

      def give_up
        set_pause
        @commits = 0
        discard
      end

      def set_pause
        @pause = @uses < USES_WORTH_IT ? [2 * @pause, MOST_COMMITS_BEFORE].min : COMMITS_BEFORE
        @uses = 0
      end

      def usable?(stat, bytes)
        now = File.lstat(@place.path)
        return unless @stamp.of?(now) && now.mode == stat.mode && now.uid == stat.uid && now.gid == stat.gid
        return unless @durable || bytes.bytesize == now.size

        @size = now.size
        @io.flock(File::LOCK_EX | File::LOCK_NB) && lease
      rescue SystemCallError
        nil
      end

      # Whether no other process has the file open. (Its owner and root may know.) Until the end of the lease, opening
      # it waits.
      def lease
        @io.fcntl(F_SETSIG, SIGNAL)
        @io.fcntl(F_SETLEASE, WRITE_LEASE).zero?
      end

      def written_over(bytes, store)
        write(bytes)
        @io.fdatasync if @durable
        return give_up unless Exchange.call(@place.path, @target)

        @uses += 1
        taken(store)
      rescue StandardError
        discard
        raise
      end

      # The file's time is exact, as after each commit.
      def write(bytes)
        written = 0
        written += @io.pwrite(bytes.byteslice(written..), written) while written < bytes.bytesize
        @io.truncate(bytes.bytesize) if bytes.bytesize < @size
        now = Time.now
        File.lutime(now, now, @place.path)
      ensure
        @io.fcntl(F_SETLEASE, NO_LEASE)
      end

      # (Without the sync, a file system that delays the choice of blocks could have an empty file after a power
      # failure.)
      def created(bytes, store, stat)
        file = Temporary.new(@target, @place.path, stat)
        file.write(bytes)
        file.sync
        return discard_new(file) unless Exchange.call(@place.path, @target)

        @io = file.io
        @uses = 0
        taken(store)
      rescue SystemCallError, Error
        discard_new(file)
      end

      def discard_new(file)
        file&.discard
        give_up
      end

      # What was the store is the spare now. If it has another name, too, it must stay as it is.
      def taken(store)
        new = @io
        @io = store
        @place.stat = store.stat
        @place.process = OpenFiles.process
        @stamp = Stamp.new(@place.stat)
        @io.flock(File::LOCK_UN)
        discard unless @place.stat.nlink == 1
        new
      end
    end
  end
end
