# frozen_string_literal: true

require "socket"
require_relative "hub_address"

module Highball
  # The server did not take a message, or it is not known whether it has.
  class PublishError < StandardError; end

  # Publishes messages of this process: over one connection to the server for each thread that does so at the moment.
  # The table in crates/front/src/publishers.rs describes what is sent.
  class Publisher
    # How long a message may take, in seconds.
    TIME = 5
    # The most idle connections.
    IDLE = 4
    # The longest text, in bytes.
    TEXT_BYTES = (1 << 32) - 1

    # The code by which a server says that another one takes the message.
    ELSEWHERE = 2

    attr_reader :pid

    def initialize
      @pid = Process.pid
      @mutex = Mutex.new
      @idle = []
    end

    # Returns the id of the message.
    def publish(stream, data, event)
      texts = [stream, event, data].map { |text| text.to_s.b }
      raise PublishError, "a message has less than 4 GiB" if texts.any? { |text| text.bytesize > TEXT_BYTES }

      ends_at = Connection.now + TIME
      code, text = exchange(texts, ends_at)
      code, text = exchange(texts, ends_at) if code == ELSEWHERE
      raise PublishError, "the message was not published: #{text}" unless code.zero?

      text
    end

    # Closes the idle connections.
    def close
      @mutex.synchronize { @idle.each(&:close).clear }
    end

    private

    def exchange(texts, ends_at)
      connection = idle || connect(ends_at)
      reply = connection.exchange(texts, ends_at)
      reply.first == ELSEWHERE ? connection.close : keep(connection)
      reply
    ensure
      connection&.close unless reply # what comes next on it could be half of a reply
    end

    def idle
      while (connection = @mutex.synchronize { @idle.pop })
        return connection if connection.alive?

        connection.close
      end
    end

    def keep(connection)
      @mutex.synchronize { @idle << connection if @idle.length < IDLE } or connection.close
    end

    def connect(ends_at)
      HubAddress.all.each do |address|
        return Connection.new(address, ends_at)
      rescue Errno::ECONNREFUSED
        next # that server has ended
      end
      raise PublishError, "no Highball of this user serves #{HubAddress.folder}: start it, or publish as its user"
    end

    # A connection to the server, for one message after the other.
    class Connection
      def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def initialize(address, ends_at)
        name, credentials = address.split("/", 2)
        @socket = UNIXSocket.new("\0#{name}")
        write([credentials.bytesize].pack("L<") + credentials, ends_at)
      end

      def exchange(texts, ends_at)
        write(texts.map(&:bytesize).pack("L<3") + texts.join, ends_at)
        code, length = read(3, ends_at).unpack("CS<")
        [code, read(length, ends_at).force_encoding(Encoding::UTF_8)]
      end

      # Whether the server has not closed it. It says nothing unasked.
      def alive? = @socket.read_nonblock(1, exception: false) == :wait_readable

      def close = @socket.close

      private

      def write(bytes, ends_at)
        written = 0
        while written < bytes.bytesize
          count = @socket.write_nonblock(bytes.byteslice(written..), exception: false)
          count == :wait_writable ? wait(:wait_writable, ends_at) : written += count
        end
      rescue Errno::EPIPE, Errno::ECONNRESET
        nil # its reply says why
      end

      def read(length, ends_at)
        bytes = "".b
        while bytes.bytesize < length
          piece = @socket.read_nonblock(length - bytes.bytesize, exception: false)
          raise PublishError, "the server has ended; the message may have been published" if piece.nil?

          piece == :wait_readable ? wait(:wait_readable, ends_at) : bytes << piece
        end
        bytes
      rescue Errno::ECONNRESET
        raise PublishError, "the server has closed the connection; the message may have been published"
      end

      def wait(what, ends_at)
        return if @socket.public_send(what, [ends_at - Connection.now, 0].max)

        raise PublishError, "the server did not take the message within #{TIME} s; it may have been published"
      end
    end
  end
end
