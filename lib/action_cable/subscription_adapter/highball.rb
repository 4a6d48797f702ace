# frozen_string_literal: true

require "digest"
require "highball"
require "highball/cable/bus"
require "highball/listener"

module ActionCable
  module SubscriptionAdapter
    # Action Cable's adapter for applications that Highball serves (`adapter: highball` in config/cable.yml): broadcasts
    # of any process of the application reach the clients of all workers, without another server. With the address of a
    # Redis (`url`), they reach the clients of all machines.
    class Highball < Base
      prepend ChannelPrefix

      # Elsewhere than on Linux there is one process, and no server that passes broadcasts on.
      def self.new(server)
        return super if ::Highball::HostSystem.linux?

        require "action_cable/subscription_adapter/async"
        Async.new(server)
      end

      # The Highball::Cable::Bus between machines, or nil.
      attr_reader :bus

      def initialize(*)
        super
        @bus = ::Highball::Cable::Bus.of(@server.config.cable) { |channel| STREAMS + name_of(channel) }
      end

      # Prefix of this adapter's streams.
      STREAMS = "cable:"
      # Longest broadcasting name that becomes the name of a stream. Longer and unusual names are digested.
      NAME_BYTES = 200
      PLAIN = /\A(?!sha256:)[[:graph:]&&[^,]](?:[[:print:]&&[^,]]*[[:graph:]&&[^,]])?\z/n

      def broadcast(channel, payload)
        @bus ? @bus.broadcast(channel, payload) : ::Highball.publish(STREAMS + name_of(channel), payload)
      end

      def subscribe(channel, callback, success_callback = nil)
        subscribers.add_subscriber(name_of(channel), callback, success_callback)
      end

      def unsubscribe(channel, callback)
        subscribers.remove_subscriber(name_of(channel), callback)
      end

      # The stream of the hub that has the broadcasts of this channel.
      def stream_name(channel)
        STREAMS + name_of(channel_with_prefix(channel))
      end

      def shutdown
        @subscribers&.shutdown
      end

      private

      def name_of(channel)
        name = channel.to_s.b
        name.bytesize <= NAME_BYTES && PLAIN.match?(name) ? name : "sha256:#{Digest::SHA256.hexdigest(name)}"
      end

      # Returns the subscribers of this process. A fork gets new ones.
      def subscribers
        return @subscribers if @subscribers&.own?

        @server.mutex.synchronize do
          @subscribers = Subscribers.new(STREAMS, logger) unless @subscribers&.own?
          @subscribers
        end
      end

      # The subscriptions of a process, and their listener.
      class Subscribers < SubscriberMap
        def initialize(prefix, logger)
          super()
          @listener = ::Highball::Listener.new(prefix, logger) { |name, data| broadcast(name.b, data) }
        end

        def own? = @listener.own?
        def shutdown = @listener.stop

        # Confirms the subscription once the client will get all messages that are published afterwards.
        def add_subscriber(channel, subscriber, on_success)
          super(channel, subscriber, nil)
          @listener.when_listening(&on_success) if on_success
        end
      end
    end
  end
end
