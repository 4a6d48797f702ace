# frozen_string_literal: true

require "socket"
require_relative "deadline"

# A client's connection, by any protocol: every wait ends at a deadline.
class ClientConnection
  class TimedOut < StandardError; end
  class BadAnswer < StandardError; end

  READ_BYTES = 65_536
  WITHIN = 15 # seconds for one answer, by default
  LONGEST = 180 # seconds for an endless one

  # `from`: the client's address.
  def self.tcp(port, host = "127.0.0.1", from: nil)
    new(Socket.tcp(host, port, from, connect_timeout: WITHIN))
  end

  def self.unix(path)
    new(UNIXSocket.new(path))
  end

  attr_reader :socket
  # The size of the pieces in which bytes are written; nil: as many as the other end takes.
  attr_accessor :piece_bytes

  def initialize(socket)
    @socket = socket
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) unless socket.is_a?(UNIXSocket)
    @buffer = +"".b
    begin_wait(WITHIN)
  end

  # The connection; or the value of the block, which gets it, and after which it is closed.
  def use
    return self unless block_given?

    begin
      yield self
    ensure
      close
    end
  end

  def get(target, headers = {}, **options, &piece)
    request("GET", target, headers, **options, &piece)
  end

  # Writes all bytes.
  def write(bytes, within: WITHIN)
    begin_wait(within)
    sent = 0
    while sent < bytes.bytesize
      count = @socket.write_nonblock(bytes.byteslice(sent, piece_bytes || READ_BYTES), exception: false)
      count == :wait_writable ? wait(:write) : sent += count
    end
    self
  end

  # Whether the server ended the connection, having sent nothing more.
  def ended?(within: WITHIN)
    begin_wait(within)
    @buffer.empty? && !fill(optional: true)
  end

  def close
    @socket.close
  end

  private

  def begin_wait(within)
    @within = within
    @ends_at = Deadline.now + within
    @last_end = Deadline.now + [within, LONGEST].max
  end

  # The name, in lower case, and the value.
  def field(line)
    match = /\A([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*\z/n.match(line)
    raise BadAnswer, "field line: #{line.inspect}" unless match

    [match[1].downcase, match[2]]
  end

  # Reads what is there into the buffer; false at the end of the connection.
  def fill(optional: false)
    case (bytes = @socket.read_nonblock(READ_BYTES, exception: false))
    when :wait_readable
      wait(:read)
      fill(optional: optional)
    when nil
      optional ? false : cut_off
    else
      @buffer << bytes
      # A body that is read for long is no reason to give up, as long as it goes on.
      @ends_at = [@ends_at, Deadline.now + [@within, WITHIN].min].max.clamp(..@last_end)
      true
    end
  end

  def cut_off
    raise EOFError, "the connection ended within an answer: #{@buffer[0, 200].inspect}"
  end

  def wait(direction)
    io = @socket.to_io # of a socket with TLS, the one below
    left = @ends_at - Deadline.now
    ready = left.positive? && (direction == :read ? io.wait_readable(left) : io.wait_writable(left))
    raise TimedOut, "nothing to #{direction} within #{@within} s; so far: #{@buffer[0, 200].inspect}" unless ready
  end
end
