# frozen_string_literal: true

require "socket"
require_relative "deadline"
require_relative "http_connection"

# What the clients of FastCGI and LSAPI have in common: a connection on which every wait ends at a deadline, and the
# variables that a web server sends for a request. What is written can be cut into pieces, each sent alone.
class CgiConnection
  class TimedOut < StandardError; end
  class BadAnswer < StandardError; end

  READ_BYTES = 65_536
  WITHIN = 15 # seconds for one answer, by default

  def self.tcp(port, host = "127.0.0.1")
    new(Socket.tcp(host, port, connect_timeout: WITHIN))
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
    @ends_at = Deadline.now + WITHIN
  end

  # Sends one request and reads its answer. Its body may be a string or an enumerable of strings. `params` are variables
  # beside those of `variables`, or other values for them; nil leaves one out. With a block, pieces of the answer's body
  # are yielded as they arrive, and not kept.
  def request(method, target, headers = {}, body = nil, params: {}, within: WITHIN, **options, &piece)
    send_request(method, target, headers, body, params: params, **options)
    read_response(within: within, &piece)
  end

  def get(target, headers = {}, **options, &piece)
    request("GET", target, headers, **options, &piece)
  end

  # Writes all bytes.
  def write(bytes, within: WITHIN)
    @ends_at = Deadline.now + within
    sent = 0
    while sent < bytes.bytesize
      count = @socket.write_nonblock(bytes.byteslice(sent, piece_bytes || READ_BYTES), exception: false)
      count == :wait_writable ? wait(:write) : sent += count
    end
    self
  end

  # Whether the server ended the connection, having sent nothing more.
  def ended?(within: WITHIN)
    @ends_at = Deadline.now + within
    @buffer.empty? && !fill
  end

  def close
    @socket.close
  end

  private

  # The variables of a request, without header fields, as web servers send them.
  def variables(method, target)
    path, query = target.split("?", 2)
    {
      "REQUEST_METHOD" => method, "REQUEST_URI" => target, "SCRIPT_NAME" => path, "QUERY_STRING" => query.to_s,
      "SERVER_PROTOCOL" => "HTTP/1.1", "REQUEST_SCHEME" => "http", "GATEWAY_INTERFACE" => "CGI/1.1",
      "SERVER_SOFTWARE" => "test", "SERVER_NAME" => "test", "SERVER_ADDR" => "192.0.2.1", "SERVER_PORT" => "80",
      "REMOTE_ADDR" => "192.0.2.7", "REMOTE_PORT" => "4711", "DOCUMENT_ROOT" => "/srv",
      "SCRIPT_FILENAME" => "/srv#{path}"
    }
  end

  # An answer from the fields of its head, of which Status may be one; without a body yet.
  def response_from(fields, status: nil)
    name, line = fields.assoc("status")
    fields -= [[name, line]] if line
    number, reason = line.to_s.split(" ", 2)
    HttpResponse.new(status: status || (number || 200).to_i, reason: reason.to_s, fields: fields, body: +"".b)
  end

  def field(line)
    match = /\A([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*\z/n.match(line)
    raise BadAnswer, "field line: #{line.inspect}" unless match

    [match[1].downcase, match[2]]
  end

  # Exactly this many bytes; nil if the connection ends before the first.
  def take(count, optional: false)
    until @buffer.bytesize >= count
      next if fill
      return nil if optional && @buffer.empty?

      raise EOFError, "the connection ended within an answer: #{@buffer[0, 200].inspect}"
    end
    @buffer.slice!(0, count)
  end

  # Reads what is there into the buffer; false at the end of the connection.
  def fill
    case (bytes = @socket.read_nonblock(READ_BYTES, exception: false))
    when :wait_readable
      wait(:read)
      fill
    when nil
      false
    else
      @buffer << bytes
      # A body that is read for long is no reason to give up, as long as it goes on.
      @ends_at = [@ends_at, Deadline.now + WITHIN].max
      true
    end
  end

  def wait(direction)
    left = @ends_at - Deadline.now
    ready = left.positive? && (direction == :read ? @socket.wait_readable(left) : @socket.wait_writable(left))
    raise TimedOut, "nothing to #{direction} in time; so far: #{@buffer[0, 200].inspect}" unless ready
  end
end
