# frozen_string_literal: true

module Highball
  # What a streaming body is called with (Rack 3 SPEC, "Streaming Body"): writes go to the client as they
  # come, reads come from the request's body.
  class Stream
    def initialize(ring, ticket, input)
      @ring = ring
      @ticket = ticket
      @input = input
      @write_closed = false
      @read_closed = false
    end

    # Returns the number of bytes written; raises Errno::EPIPE once the client has gone.
    def write(chunk)
      raise IOError, "not opened for writing" if @write_closed

      chunk = chunk.to_s
      raise Errno::EPIPE, "the client has gone" unless @ring.write(@ticket, chunk)

      chunk.bytesize
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
