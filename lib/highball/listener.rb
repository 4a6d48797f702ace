# frozen_string_literal: true

require_relative "hub_connection"

module Highball
  # Receives messages in a thread: those of all streams whose names begin with a prefix. If the server ends the
  # connection, for example in a hot restart, the thread reconnects and continues after its last message.
  class Listener
    LISTEN = 1
    # Time to connect, and the longest pause between two attempts, in seconds.
    TIME = 5
    PAUSE = 2
    # One line of an event.
    FIELD = /^(id|data): (.*)\n/

    @all = []
    class << self
      # The listeners of this process.
      attr_reader :all
    end

    # Calls the block with the name of the stream, without the prefix, and with the data.
    def initialize(prefix, logger, &receive)
      @prefix = prefix
      @logger = logger
      @receive = receive
      @pid = Process.pid
      @mutex = Mutex.new
      @waiting = []
      @last_id = ""
      Listener.all << self
      start
    end

    # Returns whether this process has the thread. (A fork has not.)
    def own? = @pid == Process.pid

    # Runs the block once all messages that are published afterwards will be received.
    def when_listening(&block)
      now = @mutex.synchronize { @listens || (@waiting.push(block) && false) }
      yield if now
    end

    # Ends the thread.
    def stop
      Listener.all.delete(self)
      @stopped = true
      @thread.kill.join if own? && @thread != Thread.current
    end

    private

    def start
      @thread = Thread.new do
        listen until @stopped
      end
      @thread.name = "highball listener"
      @thread.thread_variable_set(:fork_safe, true) # it ends before the worker is forked from
    end

    def listen
      connection = HubConnection.open(HubConnection.now + TIME)
      code, text = connection.order(LISTEN, [@prefix, @last_id, ""], HubConnection.now + TIME)
      raise PublishError, text unless code.zero?

      @last_id = text
      begin_to_listen
      loop { receive(*connection.next_message) }
    rescue PublishError, SystemCallError, IOError => e
      report(e)
      sleep(@failures.to_i.zero? ? 0.05 : PAUSE)
      @failures = @failures.to_i + 1
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

    # (The first failure is normal: a hot restart ends connections, and the next attempt finds the new server.)
    def report(error)
      @logger&.warn("Highball: cannot receive messages, trying again: #{error.message}") if @failures.to_i == 1
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
