# frozen_string_literal: true

require_relative "http_connection"

# A request that can be sent again and again, and a check of its answer.
class Question
  CHUNK_BYTES = 8_000

  attr_reader :method, :target

  # The block gets an answer with the expected status. It returns the expected body and the actual one, without parts
  # that may differ.
  def initialize(method, target, headers: {}, body: nil, chunked: false, status: 200, &bodies)
    @method = method
    @target = target
    @headers = headers
    @body = body
    @chunked = chunked
    @status = status
    @bodies = bodies
  end

  # Sends it, and returns the answer; nil where the connection ended without one.
  def ask(connection, within:)
    if @chunked
      connection.send_request(method, target, @headers.merge("Transfer-Encoding" => "chunked"))
      connection.write(chunks)
    else
      connection.send_request(method, target, @headers, @body)
    end
    connection.read_response(head: method == "HEAD", within: within)
  end

  def expects?(answer) = answer.status == @status

  # The first place where the answer's body differs from the expected one; nil if there is none.
  def difference(answer)
    due, is = @bodies.call(answer)
    return if is == due

    from = [(0...due.length).find { |index| due[index] != is[index] } || due.length, 40].max - 40
    "#{is.length} bytes instead of #{due.length}; " \
      "from byte #{from} on #{is[from, 120].inspect} instead of #{due[from, 120].inspect}"
  end

  def to_s = "#{method} #{target}#{" with #{@body.bytesize} bytes#{' in chunks' if @chunked}" if @body}"

  private

  def chunks
    starts = 0.step(@body.bytesize - 1, CHUNK_BYTES)
    pieces = starts.map { |start| @body.byteslice(start, CHUNK_BYTES) }
    "#{pieces.map { |piece| "#{piece.bytesize.to_s(16)}\r\n#{piece}\r\n" }.join}0\r\n\r\n"
  end
end
