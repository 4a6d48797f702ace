# frozen_string_literal: true

module Highball
  # The argument of a streaming body's `call` (Rack 3 SPEC, "Streaming Body"): writes go to the client at once, reads
  # come from the request's body. It ends when `call` returns.
  class Stream
    # The client has disconnected. It ends a body that does not rescue it, and is not logged.
    class ClientGone < Errno::EPIPE
    end

    def initialize(ring, ticket, input)
      @ring = ring
      @ticket = ticket
      @input = input
      @write_closed = false
      @read_closed = false
    end

    # Returns the number of bytes written, as IO#write does.
    def write(*chunks)
      raise IOError, "not opened for writing" if @write_closed

      chunks.sum do |chunk|
        chunk = chunk.to_s
        raise ClientGone, "the client has disconnected" unless @ring.write(@ticket, chunk)

        chunk.bytesize
      end
    end

    def <<(chunk)
      write(chunk)
      self
    end

    def read(*args)
      raise IOError, "not opened for reading" if @read_closed

      @input&.read(*args)
    end

    # Every write is sent at once.
    def flush = self

    def close_read
      @read_closed = true
      nil
    end

    def close_write
      @write_closed = true
      nil
    end

    def close
      close_read
      close_write
    end

    # Also once the client has disconnected.
    def closed? = (@read_closed && @write_closed) || @ring.unread?(@ticket)
  end
end
