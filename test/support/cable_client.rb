# frozen_string_literal: true

require "json"
require_relative "deadline"

# A client of Action Cable that subscribes to RoomChannel, the channel of CHANNEL, over HTTP/1.1.
class CableClient
  ANSWERS_WITHIN = 60 # seconds, on a machine that has much else to do
  FIELDS = "Host: test\r\nOrigin: http://test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
           "Sec-WebSocket-Protocol: actioncable-v1-json\r\n"
  CHANNEL = <<~RUBY
    class RoomChannel < ApplicationCable::Channel
      def subscribed = stream_from(params[:room] || "room")
      def say(data) = ActionCable.server.broadcast(params[:room] || "room", { text: data["text"], pid: Process.pid })
    end
  RUBY
  CLOSE = 8

  def initialize(server, **params)
    @identifier = JSON.generate({ channel: "RoomChannel", **params })
    @connection = server.connect.write("GET /cable HTTP/1.1\r\n#{FIELDS}\r\n")
    status = @connection.read_response.status
    raise "no WebSocket: #{status}" unless status == 101

    # As Rails' own client: Action Cable may lose what comes before.
    read_until { |message| message["type"] == "welcome" }
  end

  def subscribe
    command("subscribe")
    read_until { |message| message["type"] == "confirm_subscription" }
    self
  end

  def say(text) = command("message", data: JSON.generate({ action: "say", text: text }))

  # The next text that was broadcast.
  def heard = heard_message["text"]

  # The next message that was broadcast. (That of a ping is a number.)
  def heard_message = read_until { |message| message["type"].nil? }["message"]

  # Reads as many texts, or until the server closes the WebSocket.
  def heard_until_closed(count = Float::INFINITY)
    texts = []
    texts << heard while texts.length < count
    texts
  rescue EOFError, SystemCallError
    texts
  end

  # Reads texts up to this one.
  def heard_until(text)
    texts = [heard]
    texts << heard until texts.last == text
    texts
  end

  def await_ping = read_until { |message| message["type"] == "ping" }

  def close = @connection.close

  private

  # A frame with a mask of zeros, which changes no byte.
  def command(name, **more)
    text = JSON.generate({ command: name, identifier: @identifier, **more })
    @connection.write([0x81, 0x80 | 126, text.bytesize].pack("CCn") + ("\0" * 4) + text.b)
  end

  # (Pings come all the time.)
  def read_until
    Deadline.wait("a message", within: ANSWERS_WITHIN) do
      message = read
      message if yield message
    end
  end

  def read
    first, length = @connection.read_bytes(2).unpack("CC")
    length = @connection.read_bytes(2).unpack1("n") if length == 126
    text = @connection.read_bytes(length)
    raise EOFError, "the server has closed the WebSocket" if first & 0x0f == CLOSE

    JSON.parse(text)
  end
end
