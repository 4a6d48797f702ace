# frozen_string_literal: true

module Highball
  class PStore
    # Durable commits of several threads. While one thread (the leader) writes a state and waits for the disk, the
    # transactions of others run, each on the state that the one before has left. Then one of these writes the last
    # state, which has all of their changes: the syncs are shared. Each #transaction returns when its changes are on the
    # disk. No transaction waits for another one's block, except for its turn.
    #
    # The file stays locked from the first transaction to the last write: no other process sees a state that is not on
    # the disk. If a write fails, it fails for all transactions since the last state that is on the disk.
    class Group
      # Writes, after which the file is unlocked, so that other processes have a turn.
      MOST_WRITES = 8

      # Snapshot that is on the disk.
      attr_reader :committed
      # Snapshot that the last transaction has left.
      attr_reader :latest
      # Why a write failed, or nil.
      attr_reader :error

      # The first transaction is in it.
      #
      # snapshot:: of the locked file
      def initialize(snapshot)
        @committed = @latest = snapshot
        @mutex = Thread::Mutex.new
        @changed = Thread::ConditionVariable.new
        @finished = @durable = @writes = 0 # the first two are numbers of commits
        @inside = true
        @writing = @closing = @closed = false
        @bytes = @error = nil
      end

      # Whether a transaction is running. (For the thread whose turn it is.)
      def inside? = @inside

      # Whether a commit is on the disk.
      def durable?(number) = @mutex.synchronize { @durable >= number }

      # Begins another transaction. If the group takes no more, waits until the file is unlocked, and returns false.
      def enter
        @mutex.synchronize do
          return @inside = true if @writes < MOST_WRITES && !@closing && !@error

          @changed.wait(@mutex) until @closed
        end
        false
      end

      # Waits until the file is unlocked.
      def wait_until_closed
        @mutex.synchronize { @changed.wait(@mutex) until @closed }
      end

      # Ends the block of a transaction. Returns the number of the commit that must be on the disk before #transaction
      # returns: if it changed nothing, the last one whose changes it may have seen.
      #
      # bytes:: of the new state, nil if nothing has changed
      def leave(bytes, snapshot)
        @mutex.synchronize do
          @inside = false
          if bytes && !@error
            @bytes = bytes
            @latest = snapshot
            @finished += 1
          end
          @finished
        end
      end

      # Waits until a commit is on the disk, or has failed. If no other thread writes, this one does, by the block.
      # Returns whether the caller must close the group.
      def settle(number, &write)
        loop do
          case @mutex.synchronize { next_step(number) }
          when :write then write_latest(&write)
          when :close then return true
          else return false
          end
        end
      end

      # The caller has unlocked the file.
      def closed
        @mutex.synchronize do
          @closed = true
          @changed.broadcast
        end
      end

      private

      def next_step(number)
        @changed.wait(@mutex) while @writing && @durable < number
        return if @writing
        return @writing = :write if @durable < number && !@error
        return if @inside || @closing || (@durable < @finished && !@error)

        @closing = :close
      end

      def write_latest
        number, bytes, snapshot = @mutex.synchronize { [@finished, @bytes, @latest] }
        yield bytes
        error = nil
      rescue Exception => e # rubocop:disable Lint/RescueException -- the other threads get it, too
        error = e
      ensure
        @mutex.synchronize { written(number, snapshot, error) }
      end

      def written(number, snapshot, error)
        @writing = false
        @writes += 1
        if error
          @error = error
        else
          @durable = number
          @committed = snapshot
        end
        @changed.broadcast
      end
    end
  end
end
