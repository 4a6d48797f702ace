# frozen_string_literal: true

require_relative "http_connection"

# A request that can be sent time and again, and what its answer has to be like.
class Question
  CHUNK_BYTES = 8_000

  attr_reader :method, :target

  # The block is given an answer with the status that is expected, and says whether it is right.
  def initialize(method, target, headers: {}, body: nil, chunked: false, status: 200, &right)
    @method = method
    @target = target
    @headers = headers
    @body = body
    @chunked = chunked
    @status = status
    @right = right
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
  def right?(answer) = @right.call(answer)
  def to_s = "#{method} #{target}#{" with #{@body.bytesize} bytes#{' in chunks' if @chunked}" if @body}"

  private

  def chunks
    starts = 0.step(@body.bytesize - 1, CHUNK_BYTES)
    pieces = starts.map { |start| @body.byteslice(start, CHUNK_BYTES) }
    "#{pieces.map { |piece| "#{piece.bytesize.to_s(16)}\r\n#{piece}\r\n" }.join}0\r\n\r\n"
  end
end
