# frozen_string_literal: true

require "json"
require_relative "deadline"
require_relative "http_connection"
require_relative "web_socket_cases"

# A client of Action Cable that hides nothing: what comes are the bytes of frames.
class RawCableClient
  WITHIN = 20 # seconds
  FIELDS = { "Origin" => "http://test", "Connection" => "Upgrade", "Upgrade" => "websocket",
             "Sec-WebSocket-Version" => "13", "Sec-WebSocket-Key" => "dGhlIHNhbXBsZSBub25jZQ==",
             "Sec-WebSocket-Protocol" => "actioncable-v1-json, actioncable-unsupported" }.freeze

  attr_reader :connection, :head

  def initialize(connection, path = "/cable", fields = {}, welcome: true)
    @connection = connection
    @head = connection.send_request("GET", path, FIELDS.merge(fields)).read_response(within: WITHIN)
    next_message(type: "welcome") if welcome && accepted?
  end

  def accepted? = @head.status == 101

  def self.identifier(room = nil, channel: "RoomChannel") = JSON.generate({ channel: channel, room: room }.compact)

  def subscribe(room = nil, channel: "RoomChannel", **more)
    @identifier = self.class.identifier(room, channel: channel)
    command("subscribe", **more)
    next_message(type: "confirm_subscription")
    self
  end

  def perform(action, identifier: @identifier, **data)
    command("message", identifier: identifier, data: JSON.generate({ action: action, **data }))
  end

  def command(name, identifier: @identifier, **more)
    write_text(JSON.generate({ command: name, identifier: identifier, **more }))
  end

  def write_text(text)
    @connection.write(WebSocketCases.frame(WebSocketCases::TEXT, text))
    self
  end

  # The next frame that is no ping of Action Cable: opcode and payload.
  def next_frame
    Deadline.wait("a frame", within: WITHIN) do
      frame = read_frame(WITHIN)
      frame unless frame.last.start_with?('{"type":"ping"')
    end
  end

  # The next message of this type; nil: one with data.
  def next_message(type: nil)
    loop do
      opcode, payload = next_frame
      raise EOFError, "closed: #{payload.inspect}" if opcode == WebSocketCases::CLOSE

      message = JSON.parse(payload)
      return message if message["type"] == type
    end
  end

  # The next message, whatever it is about.
  def next_message_of_any_type
    _, payload = next_frame
    JSON.parse(payload)
  end

  def text = next_message["message"]["text"]

  # Texts up to this one.
  def texts_until(last)
    texts = [text]
    texts << text until texts.last == last
    texts
  end

  # All frames up to the end.
  def frames_to_end
    frames = []
    loop { frames << next_frame }
  rescue EOFError, SystemCallError
    frames
  end

  # All frames up to the close frame, or the end.
  def frames_to_close
    frames = [next_frame]
    frames << next_frame until frames.last.first == WebSocketCases::CLOSE
    frames
  rescue EOFError, SystemCallError
    frames
  end

  def await_ping
    loop do
      _, payload = read_frame(WITHIN)
      return JSON.parse(payload) if payload.start_with?('{"type":"ping"')
    end
  end

  def close = @connection.close

  private

  def read_frame(within)
    first, length = @connection.read_bytes(2, within: within).unpack("CC")
    length = @connection.read_bytes(2).unpack1("n") if length == 126
    length = @connection.read_bytes(8).unpack1("Q>") if length == 127
    [first & 0x0f, @connection.read_bytes(length)]
  end
end
