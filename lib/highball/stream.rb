# frozen_string_literal: true

module Highball
  # What a streaming body is called with (Rack 3 SPEC, "Streaming Body"): writes go to the client as they
  # come, reads come from the request's body. It ends when the body's `call` returns.
  class Stream
    # The client has gone. A body that does not rescue it ends by it, and nobody complains.
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
        raise ClientGone, "the client has gone" unless @ring.write(@ticket, chunk)

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

    def closed? = @read_closed && @write_closed
  end
end
