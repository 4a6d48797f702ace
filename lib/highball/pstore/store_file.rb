# frozen_string_literal: true

require_relative "../native"
require_relative "open_files"
require_relative "spare"
require_relative "stamp"
require_relative "temporary"

module Highball
  class PStore
    # Whether Highball's extension is built for the running Ruby. Without it, PStore does the same in more time. (There
    # may be an older extension, if the source has changed since it was built.)
    EXTENSION = Extension.load_if_built && Native.respond_to?(:lock_same)

    # The file of a store: locked, read, and replaced in one step. One thread uses it at a time.
    #
    # The lock is the one of Ruby's PStore: flock(2) on the file itself. Because a commit puts another file in its
    # place, the lock counts only if the path still names the locked file afterwards; otherwise the new file is
    # locked.
    #
    # The file stays open between transactions, as far as OpenFiles allows: opening it would take as long as all the
    # rest.
    #
    # Highball's extension, if it is built for the running Ruby, asks in one call whether the file has changed. The code
    # here does the same in more time, and all that follows if it has.
    class StoreFile
      # A file whose time is this recent can change again without another time: the system's clock for files ticks
      # every 4 to 10 ms. Some file systems keep only seconds.
      TICK_SECONDS = 0.02
      COARSE_TICK_SECONDS = 2.0
      # The bytes of a smaller file are kept while its time is that recent. Comparing them takes less time than setting
      # an exact time, or than parsing them.
      MOST_COMPARED_BYTES = 16 * 1024

      # create:: whether `lock` makes a missing file
      # follow:: whether the path may be a symbolic link
      # spare::  whether commits may keep a spare file beside it
      def initialize(path, durable:, in_place: false, create: true, follow: true, spare: false)
        @path = File.path(path).dup.freeze # (Ruby copies an unfrozen one for each call.)
        @create = create
        @follow = follow
        @durable = durable
        @in_place = in_place
        @with_spare = spare
        @io = @spare = @committed = nil # the last: Stamp of the state that this object has written last
        @stat = File::Stat.allocate
        forget
      end

      # Waits for the lock: with other readers, or alone. Returns false if it would be for readers and there is no file.
      # However this ends, also by Thread#kill or a Timeout, `unlock` must follow.
      def lock(exclusive)
        @exclusive = exclusive
        close if @io && (forked? || (exclusive && !@writable))
        return true if (@same = exclusive && lock_same)

        while @io || open_file(exclusive)
          @io.flock(exclusive ? File::LOCK_EX : File::LOCK_SH)
          return true if of_path?

          close
        end
        false
      end

      # In a process that was forked in the transaction, the lock stays the parent's.
      def unlock
        return unless @io
        return close if forked?

        @io.flock(File::LOCK_UN)
        close unless OpenFiles.few?
      end

      # Unlocks the file, and keeps it open no longer.
      def release
        close if @io
      end

      # When the locked file was last written.
      def written_at = attributes.mtime

      # Whether another process has opened the file.
      def forked? = OpenFiles.process != @process

      # Whether the locked file is as it was when it was last read or written. Its time is the generation: `replace`
      # sets it to the nanosecond, which no other change repeats. While the time is not exact, the bytes are compared.
      def unchanged?
        return true if @same
        return @stamp.of?(@stat) if @stamp
        return false unless @recent && same_bytes?(@stat.size)

        know(@recent, settled?(@stat) && @stat) unless @exclusive
        true
      end

      # The same without a lock, of the file that the path names at this moment. False if that cannot be known.
      def current?
        stamp = @local_stamp or return false
        return Native.same_state?(@path, @packed ||= stamp.packed) if EXTENSION

        @stat.__send__(:initialize, @path) # (as `look` does)
        stamp.of?(@stat)
      rescue SystemCallError
        false
      end

      # The bytes of the locked file.
      def read
        stat = attributes
        bytes = stat.size.zero? ? String.new : @io.pread(stat.size, 0)
        raise Error, "file #{@path} was changed without a lock while it was read" if bytes.bytesize != stat.size

        know(bytes, settled?(stat) && stat)
        bytes
      end

      # Makes these the bytes of the file. After an exception it is unchanged (unless `in_place`).
      def replace(bytes, in_place: @in_place)
        forget
        stat = in_place ? write_in_place(bytes) : write_beside(bytes)
        know(bytes, stat && !stat.mtime.nsec.zero? && stat) # (some file systems keep only seconds)
        @committed = @stamp
      end

      private

      # (Opening a FIFO does not wait.)
      def open_file(exclusive)
        access = exclusive ? File::RDWR : File::RDONLY
        access |= File::CREAT if exclusive && @create
        access |= File::NOFOLLOW unless @follow
        io = File.new(@path, access | File::NONBLOCK).binmode
        OpenFiles.add(io)
        @opened = io.stat
        raise Error, "#{@path} is not a regular file" unless @opened.file?

        @writable = exclusive
        @process = OpenFiles.process
        @local = Stamp.local?(@opened)
        @identity = identity if EXTENSION && @in_place && @local
        @io = io
      rescue Errno::ENOENT
        raise if exclusive && @create
      end

      def close
        @spare&.discard
        unlock_and_close
      end

      # (Unlocked first: closing does not unlock a file that a forked process has open, too.)
      def unlock_and_close
        io = @io
        @io = nil
        io.flock(File::LOCK_UN) unless forked?
        io.close
      end

      # What `of_path?` compares, for Native.lock_same.
      def identity = [@opened.dev, @opened.ino, @opened.mode, @opened.uid].pack("Q*")

      # Locks a small file that is written in place, unless another process has it locked, and returns whether it is as
      # it was. If not, or if that is not known, the usual way follows.
      def lock_same
        return unless @io && @recent && @identity

        same = Native.lock_same(@io.fileno, @path, @identity, @recent)
        @size = @recent.bytesize
        @identity = nil if same.nil? # this system or file system cannot tell
        same
      end

      # Of the locked file. (Native.lock_same does not return them.)
      def attributes = @same ? @io.stat : @stat

      # Whether the path still names the open file, with the same mode: otherwise it may not be open
      # for what this process may do now.
      def of_path?
        look
        @size = @stat.size
        @stat.ino == @opened.ino && @stat.dev == @opened.dev && @stat.mode == @opened.mode && @stat.uid == @opened.uid
      rescue Errno::ENOENT
        false
      end

      # (A buffer that is used again takes less time than a new string.)
      def same_bytes?(size)
        size == @recent.bytesize && @io.pread(size, 0, @buffer ||= String.new(capacity: MOST_COMPARED_BYTES)) == @recent
      end

      # The attributes of the file that the path names. (File.stat takes more time: it makes an object, and releases
      # Ruby's lock, which a local file is not worth.)
      def look
        @local ? @stat.__send__(:initialize, @path) : @stat = File.stat(@path)
      end

      def forget = @stamp = @local_stamp = @packed = @recent = nil

      # stat:: the file's, if any other change of it will have another time
      def know(bytes, stat)
        forget
        if stat
          @stamp = Stamp.new(stat)
          @local_stamp = @stamp if @stamp.local?
        elsif bytes.bytesize <= MOST_COMPARED_BYTES
          @recent = bytes
        end
      end

      def settled?(stat)
        tick = stat.mtime.nsec.zero? ? COARSE_TICK_SECONDS : TICK_SECONDS
        Time.now - stat.mtime > tick
      end

      # Returns the attributes of the new file.
      def write_beside(bytes)
        @stat = attributes
        target = File.symlink?(@path) ? File.realpath(@path) : @path
        swap(target, bytes) || rename(target, bytes)
        sync_folder(File.dirname(target)) if @durable
        @opened
      end

      # (Of many open stores, none keeps a second file open.)
      def swap(target, bytes)
        return unless @with_spare && @local

        @spare ||= Spare.new(self, durable: @durable)
        untouched = @committed&.of?(@stat) && OpenFiles.few?
        new = @spare.swap(target, bytes, @io, @stat, untouched)
        adopt(new) if new
      end

      def rename(target, bytes)
        temporary = Temporary.create(target, like: @stat)
        temporary.write(bytes)
        temporary.sync if @durable
        temporary.rename
        unlock_and_close
        adopt(temporary.io)
      rescue StandardError
        temporary&.discard unless @io.equal?(temporary&.io)
        raise
      end

      # From now on the new file is locked and kept open.
      def adopt(new)
        OpenFiles.add(new)
        @io = new
        @opened = new.stat
        @stat = @opened.dup
        @identity = nil
        @writable = true
      end

      # Without this, the folder may name the old file after a power failure.
      def sync_folder(path)
        File.open(path, &:fsync)
      end

      # Returns the attributes of the file if its time is exact. (One call writes all bytes, unless the disk is full or
      # a signal arrives.)
      def write_in_place(bytes)
        size = bytes.bytesize
        written = @io.pwrite(bytes, 0)
        written += @io.pwrite(bytes.byteslice(written..), written) while written < size
        @io.truncate(size) if size < @size
        @size = size
        exact = size > MOST_COMPARED_BYTES
        set_exact_time if exact
        @io.fsync if @durable
        @io.stat if exact
      end

      def set_exact_time
        now = Time.now
        File.utime(now, now, @path)
      end
    end
  end
end
