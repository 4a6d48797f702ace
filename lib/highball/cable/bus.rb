# frozen_string_literal: true

require "securerandom"
require_relative "../hub_thread"
require_relative "../publisher"
require_relative "bus_messages"

module Highball
  module Cable
    # Broadcasts between machines, by Redis or Valkey: what is broadcast goes there, in the form of Action Cable's own
    # adapter, so that other programs can broadcast and listen as well. On each machine one worker brings what arrives
    # there to Highball's hub, and from there it reaches the clients. The others receive it, too, and the next one goes
    # on exactly where that one ends.
    #
    # For that, all name a message by the same place. So each process that begins to receive sends a mark: the place of
    # a message is the last mark before it, and how many messages are between.
    class Bus < HubThread
      # The order to bring messages, and the reply that another process does it.
      BRING = 2
      STAND_BY = 3
      # The channel of marks, with the application's prefix.
      MARKS = "_highball_bus"
      # Settings in config/cable.yml that say where Redis is.
      ADDRESS = %i[url host path sentinels nodes].freeze
      # Seconds between two marks of a process, and without any message after which the connection to Redis has failed.
      MARK_EVERY = 10
      SILENT = 25
      # Longest time that a worker waits at its start for messages to arrive, in seconds.
      READY = 2

      # The bus of an application with these settings; nil: it has none.
      def self.of(settings, &name_of_stream)
        settings = settings.to_h.symbolize_keys
        new(settings, name_of_stream) if settings.keys.intersect?(ADDRESS)
      end

      def initialize(settings, name_of_stream)
        super()
        require "action_cable/subscription_adapter/redis" # which loads the gem
        @settings = settings
        @name_of_stream = name_of_stream
        @mutex = Mutex.new
        @listens = ConditionVariable.new
      end

      # Broadcasts to the clients of all machines. `channel` has the prefix.
      def broadcast(channel, payload) = publisher.publish(channel, payload)

      # Raises an exception if Redis does not answer.
      def check = connect.tap(&:ping).close

      # Brings messages to the hub, in a thread, once it is this process's turn. Returns when this process could go on:
      # the worker whose turn it is may end as soon as this one serves.
      def start(log)
        @log = log
        start_thread("highball bus")
        @mutex.synchronize { @listens.wait(@mutex, READY) unless @has_listened }
      end

      private

      # For broadcasts of all threads. A fork must not use the same connection.
      def publisher
        @mutex.synchronize do
          @publisher = connect if @publishing_pid != Process.pid
          @publishing_pid = Process.pid
          @publisher
        end
      end

      def connect(**options)
        ::ActionCable::SubscriptionAdapter::Redis.redis_connector.call(@settings.merge(options))
      end

      def prefix = @settings[:channel_prefix]
      def marks = [prefix, MARKS].compact.join(":")
      def pattern = prefix ? "#{prefix.to_s.gsub(/[\[\]*?\\^]/) { |char| "\\#{char}" }}:*" : "*"

      # From the connection to the hub to the end of one of the connections.
      def serve
        hub = HubConnection.open(HubConnection.now + TIME)
        code, place = hub.order(BRING, ["", "", ""], HubConnection.now + TIME)
        @brought = code == STAND_BY ? place : "" # before anything can arrive
        receive(hub) do |messages|
          code, place = stand_by(hub, messages) if code == STAND_BY
          raise PublishError, place unless code.zero?

          is_complete = messages.begin_behind(place)
          while (message = messages.pop)
            @log.error(:broadcasts_missed, channels: pattern) unless is_complete
            is_complete = true
            pass_on(message, hub)
          end
        end
      ensure
        hub&.close
        end_start
      end

      # Returns the reply that ends the wait for this process's turn.
      def stand_by(hub, messages)
        loop do
          code, place = hub.reply(nil)
          return [code, place] unless code == STAND_BY

          note_brought(place, messages)
        end
      end

      # Each version of the gem has its exceptions.
      def failures = [StandardError]

      def report(error) = @log.error(:cable_bus_failed, why: error.message)

      # Receives messages while the block runs. Raises the exception that ends it.
      def receive(hub)
        messages = BusMessages.new
        listening = thread { listen(messages, hub) }
        watching = thread { watch(messages, listening) }
        yield messages
        listening.value
      rescue PublishError
        listening.value unless listening.alive? # its end has closed the connection to the hub
        raise
      ensure
        [watching, listening].compact.each { |thread| thread.kill.join }
      end

      def thread(&) = fork_safe_thread(&).tap { |thread| thread.report_on_exception = false }

      def listen(messages, hub)
        redis = connect(reconnect_attempts: 0) # a new connection has another place
        mark = new_mark
        number = 0
        redis.psubscribe(pattern) do |on|
          on.psubscribe { publisher.publish(marks, new_mark) }
          on.pmessage do |_, channel, text|
            is_mark = channel == marks
            mark, number = is_mark ? [text, 0] : [mark, number + 1]
            place = "#{mark}:#{number}"
            messages.push(BusMessages::Message.new(place, *(is_mark ? [] : [channel, text])))
            note_answer if is_mark
            end_start if is_mark && known_to_hub?(place)
          end
        end
      ensure
        messages.close
        hub.shutdown
        redis&.close
      end

      # The hub has this mark from the process that brings messages. Once this process has it, too, it can go on
      # wherever that one ends. (Empty: the hub has none yet.)
      def note_brought(mark, messages)
        @mutex.synchronize { @brought = mark }
        end_start if messages.known?(mark)
      end

      def known_to_hub?(mark) = @mutex.synchronize { ["", mark].include?(@brought) }

      # Ends the thread that listens if its connection is dead: a machine without power closes none.
      def watch(messages, listening)
        loop do
          sleep MARK_EVERY
          publisher.publish(marks, new_mark)
          raise IOError, "Redis is silent" if messages.silent_for > SILENT
        end
      rescue StandardError => e
        listening.raise(e)
      end

      def end_start
        @mutex.synchronize do
          @has_listened = true
          @listens.broadcast
        end
      end

      def new_mark = SecureRandom.hex(8)

      # Redis answers, whosever turn it is.
      def note_answer
        @log.info(:cable_bus_returned, attempts: @failures) if @failures > 1
        @failures = 0
      end

      # Another server gets the message from one of its workers.
      def pass_on(message, hub)
        stream = message.channel ? @name_of_stream.call(message.channel) : ""
        code, why = hub.order(Publisher::PUBLISH, [stream, message.place, message.text.to_s].map(&:b),
                              HubConnection.now + TIME, follows: false)
        raise PublishError, "another server has taken over" if code == HubConnection::ELSEWHERE

        @log.error(:broadcast_dropped, why: why) unless code.zero?
      end
    end
  end
end
