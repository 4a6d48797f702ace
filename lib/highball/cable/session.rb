# frozen_string_literal: true

module Highball
  module Cable
    # A question about a WebSocket, and its answer.
    class Session
      # What the front remembers makes no sense to this version of the application: the client has to connect again.
      class Outdated < StandardError; end

      def initialize(server, env)
        @server = Server.new(server, self)
        @socket = Socket.new(env)
        @connection = server.config.connection_class.call.new(@server, env)
        @connection.instance_variable_set(:@websocket, @socket)
      end

      # A client wants to connect. Returns a Rack response, or raises Unsupported.
      def accept
        @connecting = true
        response = @connection.process
        return response unless response.equal?(Socket::ACCEPTED)

        @socket.open
        invoke(:handle_open)
        outcome = { state: state, internal: names(@server.pubsub.internal), transmit: @socket.transmissions,
                    close: @socket.closed? || @socket.transmissions.empty?, shows_positions: @socket.extended? }
        raise Unsupported, @unsupported if @unsupported

        [101, @socket.fields, [JSON.generate(outcome)]]
      end

      def connecting? = @connecting || false

      # The answer to a question, as JSON.
      def answer(question)
        restore(question)
        run(question)
        JSON.generate(outcome(question))
      rescue Outdated => e
        log("a client of Action Cable has to connect again: #{e.message}")
        JSON.generate(restart: true)
      rescue Unsupported => e
        JSON.generate(unsupported: e.message)
      end

      # The application needs what the front cannot do. (What it calls may rescue the exception.)
      def refuse(why)
        @unsupported ||= why
        raise Unsupported, why
      end

      private

      def run(question)
        text = question["text"]
        case question["kind"]
        when "command" then invoke(:dispatch_websocket_message, text)
        when "internal" then invoke(:process_internal_message, ::ActiveSupport::JSON.decode(text))
        else invoke(:handle_close)
        end
      end

      # As Action Cable's own threads do: in the application's executor, and with its way to log exceptions.
      def invoke(method, *arguments)
        @server.worker_pool.invoke(@connection, method, *arguments, connection: @connection)
      end

      # --- What the front remembers ---

      def restore(question)
        state = JSON.parse(question["state"])
        @connection.instance_variable_set(:@protocol, @socket.protocol)
        @connection.logger.add_tags(*state["tags"])
        Carried.restore(@connection, state["variables"])
        @socket.open
        @before = question["channels"].to_h { |channel| [channel["identifier"], channel["state"]] }
        @before.each { |identifier, of_channel| restore_channel(identifier, JSON.parse(of_channel)) }
      end

      def restore_channel(identifier, state)
        params = ::ActiveSupport::JSON.decode(identifier).with_indifferent_access
        channel_class = params[:channel].safe_constantize
        is_channel = channel_class.is_a?(Class) && channel_class <= ::ActionCable::Channel::Base
        raise Outdated, "there is no #{params[:channel]} any more" unless is_channel

        channel = channel_class.new(@connection, identifier, params)
        channel.instance_variable_set(:@subscription_confirmation_sent, state["confirmed"])
        counter = ::Concurrent::AtomicFixnum.new(state["deferred"])
        channel.instance_variable_set(:@defer_subscription_confirmation_counter, counter)
        state["streams"].each { |name| channel.send(:streams)[name] = Streams::HANDLER }
        Carried.restore(channel, state["variables"])
        channels[identifier] = channel
      end

      # The connection's channels, by their identifiers.
      def channels = @connection.subscriptions.instance_variable_get(:@subscriptions)

      def state
        JSON.generate(tags: @connection.logger.tags.map(&:to_s),
                      variables: Carried.dump(@connection, Carried::OF_CONNECTION))
      end

      def state_of(channel)
        counter = channel.instance_variable_get(:@defer_subscription_confirmation_counter)
        JSON.generate(confirmed: channel.instance_variable_get(:@subscription_confirmation_sent),
                      deferred: counter.value, streams: channel.send(:streams).keys,
                      variables: Carried.dump(channel, Carried::OF_CHANNEL))
      end

      # --- The answer ---

      def outcome(question)
        now = channels.transform_values { |channel| [channel, checked_state_of(channel)] }
        changed = now.reject { |identifier, (_, state)| @before[identifier] == state }
        own = state
        { transmit: @socket.transmissions, gone: @before.keys - now.keys, close: @socket.closed?,
          state: (own unless own == question["state"]), unsupported: @unsupported,
          channels: changed.map { |identifier, (channel, state)| of_channel(identifier, channel, state) } }.compact
      end

      def checked_state_of(channel)
        found = Demands.of_channel(channel.class)
        raise Unsupported, found if found

        state_of(channel)
      end

      def of_channel(identifier, channel, state)
        wrap = "{\"identifier\":#{::ActiveSupport::JSON.encode(identifier)},\"message\":"
        { identifier: identifier, state: state, wrap: wrap, streams: names(channel.send(:streams).keys) }
      end

      def names(broadcastings) = broadcastings.map { |broadcasting| @server.pubsub.name_of(broadcasting) }

      def log(text) = @server.logger&.info(text)
    end
  end
end
