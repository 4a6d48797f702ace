# frozen_string_literal: true

module Highball
  module Cable
    # What a connection has in the place of the adapter: streams begin and end in the front, once it has the answer.
    class Streams
      # What a channel has in the place of a handler for the messages of a stream.
      HANDLER = ->(_message) {}

      # The streams of messages for the client itself.
      attr_reader :internal

      def initialize(pubsub, session)
        @pubsub = pubsub
        @session = session
        @internal = []
      end

      # A stream begins when the question is answered, with everything that was published since it was asked.
      def subscribe(broadcasting, handler, on_success = nil)
        @internal << broadcasting unless handler.equal?(HANDLER)
        @session.refuse("a channel does without stream_from") unless @internal.empty? || @session.connecting?
        on_success&.call
      end

      # (Session compares the streams of each channel before and after.)
      def unsubscribe(_broadcasting, _handler) = nil

      def broadcast(...) = @pubsub.broadcast(...)

      # What the front knows this stream by.
      def name_of(broadcasting) = @pubsub.stream_name(broadcasting)
    end

    # Channels of held connections have no handlers.
    module HeldStreams
      private

      def worker_pool_stream_handler(broadcasting, user_handler, coder: nil)
        server = connection.server
        return super unless Server === server # rubocop:disable Style/CaseEquality -- it delegates what it is, too

        server.session.refuse("#{self.class} has a block for the messages of a stream") if user_handler
        is_plain = coder.nil? || coder == ::ActiveSupport::JSON
        server.session.refuse("#{self.class} has a coder for the messages of a stream") unless is_plain
        Streams::HANDLER
      end
    end
  end
end
