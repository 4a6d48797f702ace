# frozen_string_literal: true

require_relative "cgi_connection"

# A web server's end of a FastCGI connection (FastCGI 1.0, role of a responder). It reads strictly: a record that does
# not belong to the answer is an error.
class FastcgiClient < CgiConnection
  BEGIN_REQUEST = 1
  ABORT_REQUEST = 2
  END_REQUEST = 3
  PARAMS = 4
  STDIN_STREAM = 5
  STDOUT_STREAM = 6

  RESPONDER = 1
  REQUEST_COMPLETE = 0

  Record = Struct.new(:type, :id, :content)

  # The protocol status and the status of the application in the last END_REQUEST.
  attr_reader :protocol_status, :app_status

  # Sends one request. `keep`: the connection stays open after the answer.
  def send_request(method, target, headers = {}, body = nil, params: {}, keep: true, id: 1)
    length = body.bytesize if body.is_a?(String)
    begin_request(id: id, keep: keep)
    write_params(params_of(method, target, headers, length).merge(params).compact, id: id)
    body = [body] if body.is_a?(String)
    body&.each { |piece| write_body(piece, id: id) }
    end_body(id: id)
  end

  # All variables of a request. The length of the body is that of Content-Length, if a header names it.
  def params_of(method, target, headers, length = nil)
    fields = { "Host" => "test" }.merge(headers).to_h { |name, value| [name.upcase.tr("-", "_"), value.to_s] }
    of_body = { "CONTENT_TYPE" => fields.delete("CONTENT_TYPE"),
                "CONTENT_LENGTH" => fields.delete("CONTENT_LENGTH") || length&.to_s }
    variables(method, target).merge(of_body).merge(fields.transform_keys { |name| "HTTP_#{name}" })
  end

  def begin_request(id: 1, keep: true, role: RESPONDER)
    write_record(BEGIN_REQUEST, [role, keep ? 1 : 0].pack("nCx5"), id: id)
  end

  # Writes variables and their end, in records of at most this many bytes.
  def write_params(params, id: 1, record_bytes: 65_535)
    content = params.map { |name, value| pair(name, value) }.join
    write_stream(PARAMS, content, id: id, record_bytes: record_bytes)
    write_record(PARAMS, "", id: id)
  end

  # Writes a piece of the body.
  def write_body(bytes, id: 1, record_bytes: 65_535)
    write_stream(STDIN_STREAM, bytes, id: id, record_bytes: record_bytes)
  end

  def end_body(id: 1)
    write_record(STDIN_STREAM, "", id: id)
  end

  # The web server no longer waits for the answer.
  def abort(id: 1)
    write_record(ABORT_REQUEST, "", id: id)
  end

  def write_record(type, content, id: 1, padding: -content.bytesize % 8)
    write([1, type, id, content.bytesize, padding, 0].pack("CCnnCC") + content.b + ("\0" * padding))
  end

  # The next answer; nil when the connection ended before one began. EOFError: the answer was cut off.
  def read_response(within: WITHIN, id: 1, &piece)
    begin_wait(within)
    response = nil
    text = +"".b
    while (record = read_record(optional: response.nil? && text.empty?))
      if record.type == END_REQUEST
        response ? (return response) : raise(BadAnswer, "no head, status #{protocol_status}: #{text.inspect}")
      end
      next if record.content.empty? # the end of a stream

      raise BadAnswer, "not of the answer: #{record.inspect}" unless [record.type, record.id] == [STDOUT_STREAM, id]

      text << record.content
      response ||= take_head(text) or next
      take_body(response, text, &piece)
    end
  end

  # The next record; nil at the end of the connection, if that is allowed here.
  def read_record(optional: false)
    header = take(8, optional: optional) or return nil
    version, type, id, length, padding = header.unpack("CCnnC")
    raise BadAnswer, "version #{version}" unless version == 1

    content = take(length)
    take(padding)
    @app_status, @protocol_status = content.unpack("NC") if type == END_REQUEST
    Record.new(type, id, content)
  end

  private

  def write_stream(type, content, id:, record_bytes:)
    content = content.b
    0.step(content.bytesize - 1, record_bytes) do |at|
      write_record(type, content.byteslice(at, record_bytes), id: id)
    end
  end

  # Takes the head off the text, once it is whole.
  def take_head(text)
    head, body = text.split("\r\n\r\n", 2)
    return unless body

    text.replace(body)
    response_from(head.split("\r\n").map { |line| field(line) })
  end

  def take_body(response, text)
    bytes = text.slice!(0, text.bytesize)
    block_given? ? (yield bytes unless bytes.empty?) : response.body << bytes
  end

  def pair(name, value)
    lengths = [name, value].map { |text| text.bytesize < 128 ? [text.bytesize].pack("C") : long(text.bytesize) }
    lengths.join.b + name.b + value.b
  end

  def long(length)
    [length | (1 << 31)].pack("N")
  end
end
