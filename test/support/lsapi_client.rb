# frozen_string_literal: true

require_relative "cgi_connection"

# A LiteSpeed web server's end of an LSAPI connection. It reads strictly: a packet that does not belong to the answer is
# an error.
class LsapiClient < CgiConnection
  BEGIN_REQUEST = 1
  ABORT_REQUEST = 2
  RESP_HEADER = 3
  RESP_STREAM = 4
  RESP_END = 5
  STDERR_STREAM = 6
  REQ_RECEIVED = 7
  CONN_CLOSE = 8

  # The header fields that have a place, in the order of the protocol.
  KNOWN = %w[
    Accept Accept-Charset Accept-Encoding Accept-Language Authorization Connection Content-Type Content-Length Cookie
    Cookie2 Host Pragma Referer User-Agent Cache-Control If-Modified-Since If-Match If-None-Match If-Range
    If-Unmodified-Since Keep-Alive Range X-Forwarded-For Via Transfer-Encoding
  ].map(&:downcase).freeze

  # The length of a body that is too long for its place, and stands in Content-Length.
  LENGTH_IN_FIELD = -2
  LONGEST = (2**31) - 1

  Packet = Struct.new(:type, :content)

  # The byte order of what is written: :little or :big.
  attr_accessor :order

  # Whether the server has confirmed the last request, and announced that it closes the connection; and what came on
  # STDERR.
  attr_reader :received, :closing, :errors

  def initialize(socket)
    super
    @order = :little
    @errors = +"".b
  end

  # Sends one request. `length`: that of the body, where that is not a string.
  def send_request(method, target, headers = {}, body = nil, params: {}, length: nil)
    length ||= body.is_a?(String) ? body.bytesize : 0
    begin_request(method, target, headers, length, params: params)
    body = [body] if body.is_a?(String)
    body&.each { |piece| write_body(piece) }
  end

  # Sends a request without its body.
  def begin_request(method, target, headers = {}, length = 0, params: {})
    fields = { "Host" => "test" }.merge(headers).to_a
    named = fields.any? { |name, _| name.casecmp?("content-length") }
    fields << ["Content-Length", length.to_s] unless named || length.zero?
    env = variables(method, target).merge(params).compact
    @received = @closing = false
    @errors = +"".b
    write(request_packet(method, target, fields, env, length))
  end

  # Writes a piece of the body, which has no frame.
  def write_body(bytes)
    write(bytes.b)
  end

  # The web server no longer waits for the answer.
  def abort
    write(header(ABORT_REQUEST, 8))
  end

  # The next answer; nil when the connection ended before one began. EOFError: the answer was cut off.
  def read_response(within: WITHIN)
    begin_wait(within)
    response = nil
    while (packet = read_packet(optional: response.nil?))
      case packet.type
      when REQ_RECEIVED then @received = true
      when STDERR_STREAM then @errors << packet.content
      when RESP_END then return ended(response)
      when RESP_HEADER
        raise BadAnswer, "a second head: #{packet.inspect}" if response

        response = head(packet.content)
      when RESP_STREAM
        raise BadAnswer, "a body without a head" unless response

        block_given? ? (yield packet.content) : response.body << packet.content
      else
        raise BadAnswer, "not of the answer: #{packet.inspect}"
      end
    end
  end

  # The next packet; nil at the end of the connection, if that is allowed here.
  def read_packet(optional: false)
    bytes = take(8, optional: optional) or return nil
    prefix, type, flags = bytes.unpack("a2CC")
    @answer_order = flags.anybits?(1) ? :big : :little
    length = bytes[4, 4].unpack1(int(@answer_order))
    raise BadAnswer, "not a packet: #{bytes.inspect}" unless prefix == "LS" && length >= 8

    Packet.new(type, take(length - 8))
  end

  private

  def ended(response)
    raise BadAnswer, "no head" unless response

    # What follows at once says whether the connection goes on.
    @closing = @buffer.byteslice(0, 3) == "LS#{CONN_CLOSE.chr}"
    take(8) if @closing
    response
  end

  def head(content)
    count, status = content.unpack(int(@answer_order) * 2)
    lengths = content[8, 2 * count].unpack(short(@answer_order) * count)
    at = 8 + (2 * count)
    lines = lengths.map do |length|
      line = content.byteslice(at, length)
      at += length
      raise BadAnswer, "a field without its end: #{line.inspect}" unless line.end_with?("\0")

      line.chomp("\0")
    end
    raise BadAnswer, "#{content.bytesize - at} bytes after the head" unless at == content.bytesize

    response_from(lines.map { |line| field(line) }, status: status.zero? ? nil : status)
  end

  def header(type, length)
    ["LS", type, order == :big ? 1 : 0, length].pack("a2CC#{int(order)}")
  end

  # The variables and the places of the fields follow the numbers; the client's head is last, and places are in it.
  def request_packet(method, target, fields, env, length)
    text, known, others = places(method, target, fields)
    variables, offsets = environment(env)
    numbers = [text.bytesize, length > LONGEST ? LENGTH_IN_FIELD : length, *offsets, others.length, env.length, 0]
    rest = ints(numbers) + variables
    rest << ("\0" * (-(rest.bytesize + 8) % 8))
    rest << known.map(&:last).pack(short(order) * 25) << "\0\0" << ints(known.map(&:first)) << ints(others.flatten)
    rest << text
    header(BEGIN_REQUEST, 8 + rest.bytesize) + rest
  end

  # The client's head, and where in it fields stand: for each known one an offset and a length, 0 where it is absent;
  # for each other one those of name and value.
  def places(method, target, fields)
    text = "#{method} #{target} HTTP/1.1\r\n".b
    known = Array.new(25) { [0, 0] }
    others = []
    fields.each do |name, value|
      name_at = text.bytesize
      value_at = name_at + name.bytesize + 2
      text << name.b << ": " << value.to_s.b << "\r\n"
      index = KNOWN.index(name.downcase)
      place = [value_at, value.to_s.bytesize]
      index && known[index] == [0, 0] ? known[index] = place : others << [name_at, name.bytesize, *place]
    end
    [text << "\r\n", known, others]
  end

  # No special variables; the variables; and the offsets, from the begin of the packet, of those four that have one.
  def environment(env)
    bytes = "\0\0\0\0".b
    offsets = {}
    env.each do |name, value|
      bytes << [name.bytesize + 1, value.bytesize + 1].pack("nn") << name.b << "\0"
      offsets[name] = 44 + bytes.bytesize
      bytes << value.b << "\0"
    end
    [bytes << "\0\0\0\0", offsets.values_at("SCRIPT_FILENAME", "SCRIPT_NAME", "QUERY_STRING", "REQUEST_METHOD")
                                 .map { |offset| offset || 44 }]
  end

  def ints(numbers)
    numbers.pack(int(order) * numbers.length)
  end

  def int(order)
    order == :big ? "l>" : "l<"
  end

  def short(order)
    order == :big ? "s>" : "s<"
  end
end
