# frozen_string_literal: true

# The beginning of an application of WebSockets, by the library that Action Cable is built on, which knows nothing of
# Highball.
module WebSocketApp
  # What comes goes to `hear`, and the code of the end to `finish`.
  BEGINNING = <<~RUBY
    require "websocket/driver"

    class WebSocketApp
      attr_reader :env

      def initialize(env)
        @env = env
        env["rack.hijack"].call
        @socket = env["rack.hijack_io"]
        @driver = WebSocket::Driver.rack(self)
        @driver.on(:message) { |event| hear(event.data) }
        @driver.on(:close) { |event| finish(event.code) }
        @driver.start
        Thread.new { read }
      end

      def url = "ws://test/"
      def write(bytes) = @socket.write(bytes)

      private

      # To the end: the client closes the connection once it has the close frame.
      def read
        loop { @driver.parse(@socket.readpartial(65_536)) }
      rescue IOError, SystemCallError
        @socket.close
      end

      def finish(_code) = nil
    end
  RUBY
end
