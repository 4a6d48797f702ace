# frozen_string_literal: true

module Highball
  class PStore
    # What tells one state of a file from another: identity, size and times.
    class Stamp
      # File systems without a disk whose changes all processes of the machine see at once. Others are
      # reached over a network, and may show another machine's change late to a process that takes no lock.
      LOCAL = %w[tmpfs ramfs overlay zfs btrfs].freeze
      # What is mounted may change.
      MOUNTS_KNOWN_SECONDS = 60
      @local = {}
      @read_at = nil

      class << self
        # Whether a file's device is one of this machine.
        def local?(stat)
          return true unless stat.dev_major.zero? # a disk

          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          unless @read_at && now - @read_at < MOUNTS_KNOWN_SECONDS
            @local = local_devices
            @read_at = now
          end
          @local.key?(stat.dev_minor)
        end

        private

        # (proc_pid_mountinfo(5): "36 35 0:98 / /mnt rw - tmpfs …")
        def local_devices
          File.foreach("/proc/self/mountinfo").filter_map do |line|
            minor = line[/\A\d+ \d+ 0:(\d+) /, 1] or next
            [minor.to_i, true] if LOCAL.include?(line[/ - (\S+)/, 1])
          end.to_h
        rescue SystemCallError
          {}
        end
      end

      def initialize(stat)
        @stat = stat.dup # (may be used again)
        @inode = stat.ino
        @size = stat.size
        @device = stat.dev
        @changed_at = stat.ctime
      end

      # Whether a file has the same state. (`<=>` compares the times of the last write. `eql?` of times takes less time
      # than `==`.)
      def of?(stat)
        (@stat <=> stat).zero? && @inode == stat.ino && @size == stat.size && @changed_at.eql?(stat.ctime) &&
          @device == stat.dev
      end

      # The same for Native.same_state?
      def packed
        times = [@stat.mtime, @changed_at].flat_map { |time| [time.to_i, time.nsec] }
        [@device, @inode, @size, *times].pack("Q*")
      end

      # Whether this machine's processes see the file's changes at once.
      def local? = Stamp.local?(@stat)
    end
  end
end
