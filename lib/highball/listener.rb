# frozen_string_literal: true

require_relative "hub_connection"

module Highball
  # Receives what is published to the streams of this application whose names begin with a prefix, in a thread. If the
  # server ends the connection, for example since a new one has taken over, it connects again and goes on where it was.
  class Listener
    LISTEN = 1
    # How long connecting may take, and the longest pause between two tries, in seconds.
    TIME = 5
    PAUSE = 2
    # One line of an event.
    FIELD = /^(id|data): (.*)\n/

    @all = []
    class << self
      # The listeners of this process.
      attr_reader :all
    end

    # Calls the block with the name of the stream behind the prefix, and the data.
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

    # Whether it is of this process: a fork has no such thread.
    def own? = @pid == Process.pid

    # Runs the block once each message that is published from then on will be received.
    def when_listening(&block)
      now = @mutex.synchronize { @listens || (@waiting.push(block) && false) }
      yield if now
    end

    # Ends the thread. Nothing is received any more.
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

    # (The server ends connections when another one takes over: the first try finds that one.)
    def report(error)
      @logger&.warn("Highball: no messages are received, trying again: #{error.message}") if @failures.to_i == 1
    end

    def receive(name, text)
      fields = text.scan(FIELD)
      @last_id = fields.dig(0, 1)
      data = fields.filter_map { |field, value| value if field == "data" }.join("\n")
      guard { @receive.call(name.delete_prefix(@prefix), data) }
    end

    # The application's mistakes must not end the thread.
    def guard
      yield
    rescue StandardError => e
      lines = ["Highball: #{e.class} in a receiver of messages: #{e.message}", *e.backtrace.first(20)]
      @logger&.error(lines.join("\n"))
    end
  end
end
