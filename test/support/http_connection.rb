# frozen_string_literal: true

require_relative "client_connection"

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
# strictly by RFC 9112.
class HttpConnection < ClientConnection
  # The cookies of a developer's browser: a proc that returns the field `Cookie` for a host.
  attr_accessor :cookies

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

  # The next answer; nil when the connection ended before one began. Interim answers (1xx) count as separate answers.
  # With a block, pieces of the body are yielded and not kept.
  def read_response(head: false, within: WITHIN, &piece)
    begin_wait(within)
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
    begin_wait(within)
    fill until @buffer.bytesize >= count
    @buffer.slice!(0, count)
  end

  # The bytes that come next: at least one.
  def read_some(within: WITHIN)
    begin_wait(within)
    fill if @buffer.empty?
    @buffer.slice!(0, @buffer.bytesize)
  end

  # Everything up to the end of the connection.
  def read_to_end(within: WITHIN)
    begin_wait(within)
    nil while fill(optional: true)
    @buffer.slice!(0, @buffer.bytesize)
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
      fields << field(line)
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
      return nil unless required || !@buffer.empty?

      cut_off
    end
    @buffer.slice!(0, ending + 2).delete_suffix("\r\n")
  end
end
