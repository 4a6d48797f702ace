# frozen_string_literal: true

require "digest"

module Highball
  module Cable
    # What a connection has in the place of its WebSocket: it keeps what is transmitted, for the front.
    class Socket
      GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" # RFC 6455, section 1.3

      # AnyCable's extension of the protocol, which the front knows.
      EXTENDED = "actioncable-v1-ext-json"
      WELCOME = '{"type":"welcome"}'

      # The answer by which a connection accepts a WebSocket; Session makes the true one.
      ACCEPTED = [101, {}.freeze, [].freeze].freeze

      # Texts, in their order.
      attr_reader :transmissions

      def initialize(env)
        @env = env
        @transmissions = []
      end

      # From here on the client can get something.
      def open
        @is_open = true
        self
      end

      def possible? = true
      def alive? = (@is_open && !@is_closed) || false
      def closed? = @is_closed || false
      def rack_response = ACCEPTED

      def transmit(text)
        return false if @is_closed

        @transmissions << (extended? && text == WELCOME ? welcome : text)
        true
      end

      def close(*)
        @is_closed = true
      end

      # The protocol that both sides speak, or nil.
      def protocol
        offered = @env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(/ *, */)
        offered.find { |name| name == EXTENDED || ::ActionCable::INTERNAL[:protocols].include?(name) }
      end

      # Whether the client is to know where each message is in its stream.
      def extended? = protocol == EXTENDED

      # The header fields that accept it.
      def fields
        digest = Digest::SHA1.digest("#{@env['HTTP_SEC_WEBSOCKET_KEY']}#{GUID}")
        { "upgrade" => "websocket", "connection" => "Upgrade", "sec-websocket-accept" => [digest].pack("m0"),
          "sec-websocket-protocol" => protocol, ANSWER => "1" }.compact
      end

      private

      # (No session is restored by its id. Clients want one.)
      def welcome = JSON.generate(type: "welcome", sid: Random.urandom(16).unpack1("H*"))
    end
  end
end
