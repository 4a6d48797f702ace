# frozen_string_literal: true

module Highball
  class PStore
    # The file beside a store's that takes its place. If a killed process has left one, the next commit that makes
    # one removes it.
    class Temporary
      ATTEMPTS = 10
      private_constant :ATTEMPTS

      attr_reader :io

      # Creates it with the owner and mode of the file that it will replace, locked, so that a process that opens the
      # new file waits until it is durable.
      def self.create(target, like:)
        path = "#{target}.new"
        ATTEMPTS.times do
          return new(target, path, like)
        rescue Errno::EEXIST
          # The process that holds the store's lock is alone, unless a program moved another file to the store's path.
          if left?(path)
            remove(path)
          else
            path = "#{target}.new.#{Process.pid}.#{rand(1_000_000)}"
          end
        end
        raise Error, "cannot create a file beside #{target}: other processes create #{path} again and again"
      rescue Errno::EACCES, Errno::EPERM, Errno::EROFS => e
        raise e.class, "cannot create a file beside #{target}, to replace it (the option in_place writes into it)"
      end

      # Whether no process writes to this file.
      def self.left?(path)
        return true unless File.lstat(path).file?

        File.open(path, File::RDONLY | File::NOFOLLOW | File::NONBLOCK) { |io| io.flock(File::LOCK_EX | File::LOCK_NB) }
      rescue Errno::ENOENT, Errno::EACCES, Errno::ELOOP
        true
      end

      def self.remove(path)
        File.unlink(path)
      rescue Errno::ENOENT
        nil
      end

      private_class_method :left?, :remove

      def initialize(target, path, like)
        @target = target
        @path = path
        @io = File.new(path, File::RDWR | File::CREAT | File::EXCL | File::NOFOLLOW, like.mode & 0o777).binmode
        @io.sync = true
        @io.flock(File::LOCK_EX | File::LOCK_NB)
        take_owner_and_mode(like)
      rescue StandardError
        discard if @io
        raise
      end

      # Writes the bytes. The file's time is exact, as the system makes none: no two commits have the same.
      def write(bytes)
        @io.write(bytes)
        now = Time.now
        File.lutime(now, now, @path)
      end

      # Waits until the disk has it.
      def sync
        @io.fsync
      end

      def rename
        File.rename(@path, @target)
      end

      # After a failure.
      def discard
        self.class.__send__(:remove, @path)
        @io.close
      end

      private

      def take_owner_and_mode(like)
        own = @io.stat
        if own.uid != like.uid || own.gid != like.gid
          @io.chown(own.uid == like.uid ? -1 : like.uid, own.gid == like.gid ? -1 : like.gid)
        end
        @io.chmod(like.mode & 0o777) if own.mode != like.mode
      rescue Errno::EPERM
        raise Error, "cannot replace #{@target}: the new file would not have its owner and group " \
                     "(the option in_place writes into the old one)"
      end
    end
  end
end
