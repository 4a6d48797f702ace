# frozen_string_literal: true

require_relative "hub_connection"

module Highball
  # Publishes messages of this process. Each thread that publishes has a connection to the server.
  class Publisher
    # Time to publish a message, in seconds.
    TIME = 5
    # Largest number of idle connections.
    IDLE = 4
    # Longest text, in bytes.
    TEXT_BYTES = (1 << 32) - 1

    # The order to publish.
    PUBLISH = 0

    attr_reader :pid

    def initialize
      @pid = Process.pid
      @mutex = Mutex.new
      @idle = []
    end

    # Publishes a message. Returns its id.
    def publish(stream, data, event)
      texts = [stream, event, data].map { |text| text.to_s.b }
      raise PublishError, "a message must have less than 4 GiB" if texts.any? { |text| text.bytesize > TEXT_BYTES }

      ends_at = HubConnection.now + TIME
      code, text = exchange(texts, ends_at)
      # (The new server may have ended meanwhile; or the other connections are to an old one, as may be a new one.)
      code, text = exchange(texts, ends_at) while code == HubConnection::ELSEWHERE && HubConnection.now < ends_at
      raise PublishError, "the message was not published: #{text}" unless code.zero?

      text
    end

    # Closes the idle connections.
    def close
      @mutex.synchronize { @idle.each(&:close).clear }
    end

    private

    def exchange(texts, ends_at)
      connection = idle || HubConnection.open(ends_at)
      reply = connection.order(PUBLISH, texts, ends_at)
      reply.first == HubConnection::ELSEWHERE ? connection.close : keep(connection)
      reply
    ensure
      connection&.close unless reply # its next bytes may be the rest of a reply
    end

    def idle
      while (connection = @mutex.synchronize { @idle.pop })
        return connection if connection.alive?

        connection.close
      end
    end

    def keep(connection)
      @mutex.synchronize { @idle << connection if @idle.length < IDLE } or connection.close
    end
  end
end
