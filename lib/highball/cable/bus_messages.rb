# frozen_string_literal: true

module Highball
  module Cable
    # Messages from the bus between machines, in their order, between the thread that receives them and the thread that
    # brings them to the hub. While another process does that, the last ones are kept: the turn may come at any moment.
    class BusMessages
      # Most messages that are kept, and bytes of these.
      MOST = 1000
      BYTES = 8 << 20

      # A message: its place on the bus, its channel, and its text. A mark has a place alone.
      Message = Struct.new(:place, :channel, :text) do
        def bytes = place.bytesize + channel.to_s.bytesize + text.to_s.bytesize
      end

      def initialize
        @mutex = Mutex.new
        @changed = ConditionVariable.new
        @messages = []
        @bytes = 0
        @begun = false
        @received_at = now
      end

      # Seconds since the last message.
      def silent_for = now - @received_at

      # Adds a message. Once messages are taken, it waits for room; before, it drops the oldest ones.
      def push(message)
        @mutex.synchronize do
          @changed.wait(@mutex) while full? && @begun && !@closed
          drop_first while full?
          @received_at = now
          @messages << message
          @bytes += message.bytes
          @changed.broadcast
        end
      end

      # From now on messages are taken, behind this place. Returns whether none in between is missing. If the place is
      # unknown, all are taken: the other process may have brought some of them, and may have missed others.
      def begin_behind(place)
        @mutex.synchronize do
          @begun = true
          known = index(place)
          (known + 1).times { drop_first } if known
          !known.nil? || place.empty?
        end
      end

      # Whether a message, or mark, of this place is kept.
      def known?(place) = @mutex.synchronize { !index(place).nil? }

      # Returns the next message, and waits for it; nil after the end.
      def pop
        @mutex.synchronize do
          @changed.wait(@mutex) while @messages.empty? && !@closed
          drop_first
        end
      end

      # There are no more.
      def close
        @mutex.synchronize do
          @closed = true
          @changed.broadcast
        end
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def index(place) = @messages.index { |message| message.place == place }

      def full? = @messages.length >= MOST || @bytes >= BYTES

      def drop_first
        message = @messages.shift
        @bytes -= message.bytes if message
        @changed.broadcast
        message
      end
    end
  end
end
