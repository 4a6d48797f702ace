# frozen_string_literal: true

require_relative "hub_connection"

module Highball
  # Publishes messages of this process: over one connection to the server for each thread that does so at the moment.
  class Publisher
    # How long a message may take, in seconds.
    TIME = 5
    # The most idle connections.
    IDLE = 4
    # The longest text, in bytes.
    TEXT_BYTES = (1 << 32) - 1

    # The kind of the order, and the code by which a server says that another one takes the message.
    PUBLISH = 0
    ELSEWHERE = 2

    attr_reader :pid

    def initialize
      @pid = Process.pid
      @mutex = Mutex.new
      @idle = []
    end

    # Returns the id of the message.
    def publish(stream, data, event)
      texts = [stream, event, data].map { |text| text.to_s.b }
      raise PublishError, "a message has less than 4 GiB" if texts.any? { |text| text.bytesize > TEXT_BYTES }

      ends_at = HubConnection.now + TIME
      code, text = exchange(texts, ends_at)
      code, text = exchange(texts, ends_at) if code == ELSEWHERE
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
      reply.first == ELSEWHERE ? connection.close : keep(connection)
      reply
    ensure
      connection&.close unless reply # what comes next on it could be half of a reply
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
