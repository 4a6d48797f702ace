# frozen_string_literal: true

require_relative "client_connection"

# A client of HTTP/2 (RFC 9113) that hides nothing: it sends the frames that it is given, right or not.
# Heads are sent uncompressed. Of heads that come, it reads the status alone.
class Http2Client < ClientConnection
  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  DATA = 0
  HEADERS = 1
  RST_STREAM = 3
  SETTINGS = 4
  PING = 6
  GOAWAY = 7
  WINDOW_UPDATE = 8
  CONTINUATION = 9

  FRAME_BYTES = 16_384 # at most

  END_STREAM = 1
  ACK = 1
  END_HEADERS = 4

  HEADER_TABLE_SIZE = 1
  ENABLE_CONNECT_PROTOCOL = 8
  MAX_CONCURRENT_STREAMS = 3
  INITIAL_WINDOW_SIZE = 4

  NO_ERROR = 0
  PROTOCOL_ERROR = 1
  REFUSED_STREAM = 7
  CANCEL = 8
  ENHANCE_YOUR_CALM = 11

  # The statuses of the static table, and the digits in Huffman's code (RFC 7541, appendices A and B).
  STATUSES = { 8 => 200, 9 => 204, 10 => 206, 11 => 304, 12 => 400, 13 => 404, 14 => 500 }.freeze
  DIGITS = %w[00000 00001 00010 011001 011010 011011 011100 011101 011110 011111].each_with_index.to_h.freeze

  Frame = Struct.new(:type, :flags, :stream, :payload) do
    def ends_stream? = [DATA, HEADERS].include?(type) && flags.anybits?(END_STREAM)
  end

  # What has come on a stream: the statuses of its heads, its body, and the code with which the server has reset it.
  Answer = Struct.new(:statuses, :body, :reset, :is_complete) do
    def status = statuses.last
    def over? = is_complete || !reset.nil?
  end

  # The settings of the server, and the last stream that it serves with the code of its GOAWAY, if one has come.
  attr_reader :server_settings, :goaway
  # How often the server has confirmed a PING.
  attr_reader :pongs
  # Whether the server may send on, as much as it has sent.
  attr_accessor :takes
  # Whether the server's PINGs get no answer.
  attr_accessor :is_deaf

  # Sends the preface, and settings.
  def greet(settings = {})
    @answers = Hash.new { |answers, stream| answers[stream] = Answer.new([], +"".b, nil, false) }
    @windows = Hash.new { |windows, stream| windows[stream] = server_settings.fetch(INITIAL_WINDOW_SIZE, 65_535) }
    @windows[0] = 65_535
    @takes = true
    @pongs = 0
    pairs = { HEADER_TABLE_SIZE => 0 }.merge(settings).map { |name, value| [name, value].pack("nN") }
    write(PREFACE)
    write_frame(SETTINGS, 0, 0, pairs.join)
    read_frame until server_settings
    self
  end

  def write_frame(type, flags, stream, payload = "", **options)
    write(frame(type, flags, stream, payload), **options)
  end

  def frame(type, flags, stream, payload = "")
    [payload.bytesize >> 16, payload.bytesize & 0xffff, type, flags, stream].pack("CnCCN") + payload.b
  end

  # A field that is neither compressed nor kept.
  def field_bytes(name, value) = "\0#{string(name)}#{string(value)}".b

  def head(method, path, fields = {}, authority: "test")
    pseudo = { ":method" => method, ":scheme" => scheme, ":path" => path, ":authority" => authority }
    (pseudo.compact.to_a + fields.to_a).map { |name, value| field_bytes(name, value) }.join
  end

  # Sends a request, which is complete if there is no body, or a body is given.
  def send_request(stream, method, path, fields = {}, body = nil, is_complete: true, **options) # rubocop:disable Metrics/ParameterLists -- what a request has
    flags = END_HEADERS | (is_complete && body.nil? ? END_STREAM : 0)
    write_frame(HEADERS, flags, stream, head(method, path, fields, **options))
    write_frame(DATA, is_complete ? END_STREAM : 0, stream, body) if body
  end

  # The answer to a request.
  def ask(stream, ...)
    send_request(stream, ...)
    answer(stream)
  end

  # Sends as much of a body as the server takes, until it has answered or all is sent.
  def send_body(stream, bytes, is_complete: true)
    sent = 0
    while sent < bytes.bytesize
      room = [@windows[0], @windows[stream], FRAME_BYTES].min
      next read_frame if room < 1
      return if part(stream).over?

      piece = bytes.byteslice(sent, room)
      sent += piece.bytesize
      [0, stream].each { |number| @windows[number] -= piece.bytesize }
      write_frame(DATA, is_complete && sent == bytes.bytesize ? END_STREAM : 0, stream, piece)
      glance
    end
  end

  def reset(stream, code = CANCEL) = write_frame(RST_STREAM, 0, stream, [code].pack("N"))

  def give(stream, bytes) = write_frame(WINDOW_UPDATE, 0, stream, [bytes].pack("N"))

  # What has come on a stream once it is over.
  def answer(stream, within: WITHIN)
    begin_wait(within)
    read_frame until @answers[stream].over?
    @answers.delete(stream)
  end

  # What has come on a stream so far.
  def part(stream) = @answers[stream]

  # Reads until the block's value is true.
  def read_until(within: WITHIN)
    begin_wait(within)
    read_frame until yield
  end

  # Reads to the end of the connection. Returns the code of the server's GOAWAY, if one has come.
  def read_to_end(within: WITHIN)
    begin_wait(within)
    nil while read_frame(optional: true)
    goaway&.last
  rescue Errno::ECONNRESET, Errno::EPIPE, EOFError
    goaway&.last
  end

  # Reads the frames that are there, without a wait.
  def glance
    bytes = @socket.read_nonblock(READ_BYTES, exception: false)
    @buffer << bytes if bytes.is_a?(String)
    read_frame while @buffer.bytesize >= 9 && @buffer.bytesize >= 9 + "\0#{@buffer[0, 3]}".unpack1("N")
  end

  # The next frame; nil at the end of the connection, if that may come.
  def read_frame(optional: false)
    length = take(9, optional) or return
    high, low, type, flags, stream = length.unpack("CnCCN")
    frame = Frame.new(type, flags, stream & 0x7fff_ffff, take((high << 16) | low, false))
    note(frame)
    frame
  end

  private

  def scheme = @socket.respond_to?(:alpn_protocol) ? "https" : "http"

  def string(text) = integer(text.bytesize, 7) + text.b

  # An integer with a prefix of this many bits (RFC 7541, section 5.1).
  def integer(number, bits)
    most = (1 << bits) - 1
    return [number].pack("C") if number < most

    bytes = [most]
    number -= most
    while number >= 128
      bytes << ((number & 127) | 128)
      number >>= 7
    end
    (bytes << number).pack("C*")
  end

  def take(count, optional)
    (fill(optional: optional && @buffer.empty?) or return) while @buffer.bytesize < count
    @buffer.slice!(0, count)
  end

  def note(frame)
    case frame.type
    when SETTINGS then note_settings(frame)
    when PING then note_ping(frame)
    when GOAWAY then @goaway = frame.payload.unpack("NN")
    when HEADERS then @answers[frame.stream].statuses << status_of(frame.payload)
    when DATA then note_data(frame)
    when WINDOW_UPDATE then @windows[frame.stream] += frame.payload.unpack1("N")
    when RST_STREAM then @answers[frame.stream].reset = frame.payload.unpack1("N")
    end
    @answers[frame.stream].is_complete = true if frame.ends_stream?
  end

  def note_ping(frame)
    return @pongs += 1 if frame.flags.anybits?(ACK)

    write_frame(PING, ACK, 0, frame.payload) unless is_deaf
  end

  def note_settings(frame)
    return if frame.flags.anybits?(ACK)

    @server_settings = frame.payload.unpack("nN" * (frame.payload.bytesize / 6)).each_slice(2).to_h
    write_frame(SETTINGS, ACK, 0)
  end

  def note_data(frame)
    @answers[frame.stream].body << frame.payload
    return if !takes || frame.payload.empty?

    give(0, frame.payload.bytesize)
    give(frame.stream, frame.payload.bytesize) unless frame.ends_stream?
  end

  # The status is the first field, behind changes of the size of the table.
  def status_of(block)
    bytes = block.bytes.drop_while { |byte| byte & 0xe0 == 0x20 }
    return STATUSES.fetch(bytes[0] & 0x7f) if bytes[0] >= 0x80

    bits = bytes[2, bytes[1] & 0x7f].map { |byte| byte.to_s(2).rjust(8, "0") }.join
    Array.new(3) { DIGITS.fetch(bits.slice!(/\A(?:000..|01....)/)) }.join.to_i
  end
end
