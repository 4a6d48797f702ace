# frozen_string_literal: true

require "socket"
require_relative "deadline"

# One answer as it came over the wire. Header names are in lower case, their values in order of arrival.
HttpResponse = Struct.new(:version, :status, :reason, :fields, :body, :trailers, keyword_init: true) do
  def [](name)
    values(name).first
  end

  def values(name)
    fields.select { |field, _| field == name }.map(&:last)
  end
end

# A client connection that hides nothing: what is written are the bytes given, what is read is parsed
# strictly by RFC 9112, and every wait ends at a deadline.
class HttpConnection
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
  # The cookies of a developer's browser: a proc that returns the field `Cookie` for a host.
  attr_accessor :cookies

  def initialize(socket)
    @socket = socket
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) unless socket.is_a?(UNIXSocket)
    @buffer = +"".b
    @within = WITHIN
    @ends_at = Deadline.now + WITHIN
  end

  # Sends one request and reads its answer.
  def request(method, target, headers = {}, body = nil, within: WITHIN, version: "1.1")
    send_request(method, target, headers, body, version: version)
    read_response(head: method == "HEAD", within: within)
  end

  # Sends one request; the host is added unless the headers name one, and the length of a body that is given.
  def send_request(method, target, headers = {}, body = nil, version: "1.1")
    headers = with_cookies(headers)
    fields = headers.map { |name, value| "#{name}: #{value}\r\n" }
    fields.unshift("Host: test\r\n") unless headers.keys.any? { |name| name.casecmp?("host") }
    fields << "Content-Length: #{body.bytesize}\r\n" if body
    write("#{method} #{target} HTTP/#{version}\r\n#{fields.join}\r\n#{body}".b)
  end

  def get(target, headers = {}, **options)
    request("GET", target, headers, **options)
  end

  # Writes as much as the other end takes until the deadline.
  def write(bytes, within: WITHIN)
    @ends_at = Deadline.now + within
    @within = within
    sent = 0
    while sent < bytes.bytesize
      count = @socket.write_nonblock(bytes.byteslice(sent, READ_BYTES), exception: false)
      count == :wait_writable ? wait(:write) : sent += count
    end
    self
  end

  # The next answer; nil when the connection ended before one began. Interim answers (1xx) count as separate answers.
  # With a block, pieces of the body are yielded and not kept.
  def read_response(head: false, within: WITHIN, &piece)
    @ends_at = Deadline.now + within
    @within = within
    line = read_line or return
    response = parse_status_line(line)
    response.fields = read_fields
    response.body = body_of(response, head, &piece)
    response
  end

  # All answers until the server closes.
  def read_all(within: WITHIN)
    answers = []
    while (answer = read_response(within: within))
      answers << answer
    end
    answers
  end

  # Exactly this many bytes, for protocols beyond HTTP (a hijacked connection).
  def read_bytes(count, within: WITHIN)
    @ends_at = Deadline.now + within
    @within = within
    fill until @buffer.bytesize >= count
    @buffer.slice!(0, count)
  end

  # Everything up to the end of the connection.
  def read_to_end(within: WITHIN)
    @ends_at = Deadline.now + within
    @within = within
    nil while fill(optional: true)
    @buffer.slice!(0, @buffer.bytesize)
  end

  # Whether the server ended the connection, having sent nothing more.
  def ended?(within: WITHIN)
    @ends_at = Deadline.now + within
    @within = within
    @buffer.empty? && !fill(optional: true)
  end

  def close
    @socket.close
  end

  private

  def with_cookies(headers)
    host = headers.find { |name, _| name.casecmp?("host") }&.last
    cookie = host && cookies&.call(host)
    cookie ? headers.merge("Cookie" => [headers["Cookie"], cookie].compact.join("; ")) : headers
  end

  def parse_status_line(line)
    match = %r{\AHTTP/(1\.[01]) (\d{3}) (.*)\z}n.match(line) or raise BadAnswer, "status line: #{line.inspect}"
    HttpResponse.new(version: match[1], status: match[2].to_i, reason: match[3], trailers: [])
  end

  def read_fields
    fields = []
    while (line = read_line(required: true)) != ""
      match = /\A([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*\z/n.match(line)
      raise BadAnswer, "field line: #{line.inspect}" unless match

      fields << [match[1].downcase, match[2]]
    end
    fields
  end

  # RFC 9112, section 6.3: how long the body of an answer is.
  def body_of(response, head, &piece)
    return "" if head || [204, 304].include?(response.status) || response.status < 200
    return read_chunked(response, &piece) if response["transfer-encoding"] == "chunked"

    lengths = response.values("content-length")
    raise BadAnswer, "content-length: #{lengths}" if lengths.length > 1 || lengths.any? { |n| n !~ /\A\d+\z/ }

    lengths.empty? ? read_until_closed(&piece) : take(lengths.first.to_i, &piece)
  end

  def read_chunked(response, &piece)
    body = +"".b
    loop do
      line = read_line(required: true)
      raise BadAnswer, "chunk size: #{line.inspect}" unless /\A\h{1,16}\z/.match?(line)

      size = line.to_i(16)
      break if size.zero?

      chunk = take(size, &piece)
      body << chunk unless piece
      raise BadAnswer, "chunk without its end" unless read_line(required: true) == ""
    end
    response.trailers = read_fields
    body
  end

  def read_until_closed
    body = +"".b
    loop do
      part = @buffer.slice!(0, @buffer.bytesize)
      block_given? ? (yield part unless part.empty?) : body << part
      return body unless fill(optional: true)
    end
  end

  def take(count)
    body = +"".b
    while count.positive?
      fill if @buffer.empty?
      part = @buffer.slice!(0, count)
      count -= part.bytesize
      block_given? ? yield(part) : body << part
    end
    body
  end

  def read_line(required: false)
    until (ending = @buffer.index("\r\n"))
      next if fill(optional: true)
      raise EOFError, "the connection ended within an answer: #{@buffer[0, 200].inspect}" if required || !@buffer.empty?

      return nil
    end
    @buffer.slice!(0, ending + 2).delete_suffix("\r\n")
  end

  # Reads what is there into the buffer; false at the end of the connection.
  def fill(optional: false)
    case (bytes = @socket.read_nonblock(READ_BYTES, exception: false))
    when :wait_readable
      wait(:read)
      fill(optional: optional)
    when nil
      raise EOFError, "the connection ended within an answer" unless optional

      false
    else
      @buffer << bytes
      # A body that is read for long is no reason to give up, as long as it goes on.
      @ends_at = [@ends_at, Deadline.now + [@within, WITHIN].min].max
      true
    end
  end

  def wait(direction)
    left = @ends_at - Deadline.now
    ready = left.positive? && (direction == :read ? @socket.wait_readable(left) : @socket.wait_writable(left))
    raise TimedOut, "nothing to #{direction} within #{@within} s; so far: #{@buffer[0, 200].inspect}" unless ready
  end
end
