# frozen_string_literal: true

require "socket"
require_relative "hub_address"

module Highball
  # The server did not take a message, or did not say whether it has.
  class PublishError < StandardError; end

  # A connection of this process to the hub of its application. crates/front/src/publishers.rs describes the protocol.
  # Methods wait until `ends_at` of the monotonic clock, or without limit if it is nil.
  class HubConnection
    # The code of a reply that another server takes the order, at the address in its text.
    ELSEWHERE = 2

    class << self
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # Connects to the server that takes the messages of this application.
      def open(ends_at)
        HubAddress.all.each do |address|
          return new(address, ends_at)
        rescue Errno::ECONNREFUSED
          next # that server has ended
        end
        raise PublishError, "no Highball serves #{HubAddress.folder} as this user: start it, or publish as its user"
      end
    end

    def initialize(address, ends_at)
      connect(address, ends_at)
    end

    # Sends an order, also to the server that has taken over, unless it is for this one alone. Returns the reply: its
    # code and its text.
    def order(kind, texts, ends_at, follows: true)
      loop do
        write([kind, *texts.map(&:bytesize)].pack("CL<3") + texts.join, ends_at)
        code, text = reply(ends_at)
        return [code, text] unless code == ELSEWHERE && follows && follow(text, ends_at)
      end
    end

    # Waits for a reply, and returns it: its code and its text.
    def reply(ends_at)
      code, length = read(3, ends_at).unpack("CS<")
      [code, read(length, ends_at).force_encoding(Encoding::UTF_8)]
    end

    # Waits for the next message. Returns the name of its stream and the text of its event.
    def next_message
      name, text = read(8, nil).unpack("L<2")
      [read(name, nil).force_encoding(Encoding::UTF_8), read(text, nil).force_encoding(Encoding::UTF_8)]
    end

    # Returns whether the connection is open. (The server sends nothing but replies to a process that publishes.)
    def alive? = @socket.read_nonblock(1, exception: false) == :wait_readable

    def close = @socket.close

    # Has a thread that waits here for the server wait no longer.
    def shutdown
      @socket.shutdown
    rescue SystemCallError, IOError
      nil # the connection has ended
    end

    private

    def connect(address, ends_at)
      name, credentials = address.split("/", 2)
      @socket = UNIXSocket.new("\0#{name}")
      write([credentials.bytesize].pack("L<") + credentials, ends_at)
    end

    # Connects to the server that has taken over. Returns whether that is possible.
    def follow(address, ends_at)
      return false if address.empty? || self.class.now >= ends_at

      replaced = @socket
      connect(address, ends_at)
      replaced.close
      HubAddress.moved(address)
      true
    rescue Errno::ECONNREFUSED
      false # that server has ended
    end

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
      return if @socket.public_send(what, ends_at && [ends_at - self.class.now, 0].max)

      raise PublishError, "the server did not take the message in time; it may have been published"
    end
  end
end
