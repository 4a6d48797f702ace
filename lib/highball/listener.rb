# frozen_string_literal: true

require_relative "hub_thread"

module Highball
  # Receives messages in a thread: those of all streams whose names begin with a prefix. If the server ends the
  # connection, for example in a hot restart, the thread reconnects and continues after its last message.
  class Listener < HubThread
    LISTEN = 1
    # One line of an event.
    FIELD = /^(id|data): (.*)\n/

    # Calls the block with the name of the stream, without the prefix, and with the data.
    def initialize(prefix, logger, &receive)
      super()
      @prefix = prefix
      @logger = logger
      @receive = receive
      @mutex = Mutex.new
      @waiting = []
      @last_id = ""
      start_thread("highball listener")
    end

    # Runs the block once all messages that are published afterwards will be received.
    def when_listening(&block)
      now = @mutex.synchronize { @listens || (@waiting.push(block) && false) }
      yield if now
    end

    private

    def serve
      connection = HubConnection.open(HubConnection.now + TIME)
      code, text = connection.order(LISTEN, [@prefix, @last_id, ""], HubConnection.now + TIME)
      raise PublishError, text unless code.zero?

      @last_id = text
      begin_to_listen
      loop { receive(*connection.next_message) }
    ensure
      connection&.close
    end

    def begin_to_listen
      @failures = 0
      waiting = @mutex.synchronize do
        @listens = true
        @waiting.slice!(0..)
      end
      waiting.each { |block| guard(&block) }
    end

    def report(error)
      @logger&.warn("Highball: cannot receive messages, trying again: #{error.message}")
    end

    def receive(name, text)
      fields = text.scan(FIELD)
      @last_id = fields.dig(0, 1)
      data = fields.filter_map { |field, value| value if field == "data" }.join("\n")
      guard { @receive.call(name.delete_prefix(@prefix), data) }
    end

    # An exception of the application must not end the thread.
    def guard
      yield
    rescue StandardError => e
      lines = ["Highball: #{e.class} while the application received a message: #{e.message}", *e.backtrace.first(20)]
      @logger&.error(lines.join("\n"))
    end
  end
end
