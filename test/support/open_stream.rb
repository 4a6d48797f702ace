# frozen_string_literal: true

require_relative "http_connection"

# An answer that streams, from the client's side.
OpenStream = Struct.new(:connection, :path) do
  # Asks the server for it.
  def self.of(server, path)
    connection = server.connect
    connection.send_request("GET", path)
    new(connection, path)
  end

  # The first piece of the body, once it is there.
  def first
    bytes = +""
    bytes << connection.read_some until bytes.match?(/\r\n\r\n.*[^\r]\n/m)
    head, @pieces = bytes.split("\r\n\r\n", 2)
    @is_chunked = head.match?(/^transfer-encoding: chunked/i)
    unchunked[0][/\A[^\n]*\n/]
  end

  # All that follows it, and whether it is complete.
  def rest
    @pieces || first
    begun = unchunked[0][/\A[^\n]*\n/]
    until unchunked[1]
      piece = connection.read_some
      @pieces << piece
    end
    [unchunked[0].delete_prefix(begun), true]
  rescue ClientConnection::BadAnswer, EOFError, Errno::ECONNRESET
    [unchunked[0].delete_prefix(begun), !@is_chunked]
  end

  # All of it, and whether it is complete.
  def whole
    first unless @pieces
    begun = unchunked[0][/\A[^\n]*\n/]
    rest, is_complete = self.rest
    ["#{begun}#{rest}", is_complete]
  end

  def close = connection.close

  private

  def unchunked
    return [@pieces, false] unless @is_chunked

    body = +""
    rest = @pieces
    while (size, after = rest.split("\r\n", 2)) && after
      return [body, true] if size == "0"

      body << after[0, size.to_i(16)]
      rest = after[(size.to_i(16) + 2)..] || ""
    end
    [body, false]
  end
end
