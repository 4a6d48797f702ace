# frozen_string_literal: true

require_relative "raw_cable_client"

# A client of AnyCable's extended protocol. It remembers where it is in each stream.
class ExtendedCableClient < RawCableClient
  PROTOCOL = "actioncable-v1-ext-json"

  # Its last message of each stream, as it names that to the server.
  attr_reader :positions

  # `positions`:: what an earlier connection of the client had
  def initialize(connection, path = "/cable", fields = {}, positions: {}, **options)
    @positions = positions.dup
    super(connection, path, { "Sec-WebSocket-Protocol" => PROTOCOL, **fields }, **options)
  end

  # Subscribes, and asks for what an earlier connection has missed.
  def resubscribe(room = nil) = subscribe(room, history: { streams: @positions })

  # Asks for what it has missed. Returns the texts that come, and the type of the answer behind them.
  def replay(history = { streams: @positions }, identifier: @identifier)
    command("history", identifier: identifier, history: history)
    texts_to_answer
  end

  # Texts up to an answer about what it has missed, and the type of that.
  def texts_to_answer
    texts = []
    loop do
      message = next_message_of_any_type
      return [texts, message["type"]] if message["type"]

      texts << message["message"]["text"]
    end
  end

  def next_frame
    super.tap { |opcode, payload| note(JSON.parse(payload)) if opcode == WebSocketCases::TEXT }
  end

  private

  def note(message)
    stream, offset, epoch = message.values_at("stream_id", "offset", "epoch")
    @positions[stream] = { offset: offset, epoch: epoch } if stream
  end
end
