# frozen_string_literal: true

module Highball
  module Session
    # A thread that ends old sessions, so that no cron job is needed. Of all processes with the same folder, one does
    # it at a time. A forked process starts the thread again when it makes a session.
    class Sweeper
      LOOK_EVERY = 60 # seconds
      EVERY = 3600 # seconds between two sweeps, at most
      private_constant :LOOK_EVERY, :EVERY

      def initialize(folder, lifetime)
        @folder = folder
        @every = (lifetime / 4.0).clamp(1, EVERY)
        @new = 0
        @lock = Thread::Mutex.new
        @wake = Thread::ConditionVariable.new
      end

      # Reports a new session. After many, the folder is swept before its time.
      def session_made
        start unless @thread&.alive?
        @wake.signal if (@new += 1) > burst
      end

      # Sweeps all shards, if no other process does. Returns the number of sessions that have ended.
      def sweep
        File.open(File.join(@folder.path, "sweep"), File::RDWR | File::CREAT | File::NOFOLLOW, 0o600) do |file|
          return 0 unless file.flock(File::LOCK_EX | File::LOCK_NB)

          ended = (0...Folder::SHARDS).sum { |shard| @folder.sweep(shard) }
          now = Time.now
          File.utime(now, now, file.path)
          ended
        end
      end

      private

      def burst = @folder.most / 16

      def start
        @lock.synchronize do
          next if @thread&.alive?

          @thread = Thread.new { run }
          @thread.name = "highball session sweeper"
          @thread.priority = -3 # its time slices are short
        end
      end

      def run
        loop do
          @lock.synchronize { @wake.wait(@lock, [LOOK_EVERY, @every].min) }
          sweep_if_due
        rescue SystemCallError, Error => e
          warn "highball: sessions in #{@folder.path} were not swept: #{e.message}"
        end
      end

      def sweep_if_due
        return unless @new > burst || due?

        @new = 0
        sweep
      end

      def due?
        Time.now - File.mtime(File.join(@folder.path, "sweep")) > @every
      rescue Errno::ENOENT
        true
      end
    end
  end
end
