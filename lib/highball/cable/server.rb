# frozen_string_literal: true

require "delegate"

module Highball
  module Cable
    # What a connection has in the place of Action Cable's server, which does all else.
    class Server < SimpleDelegator
      attr_reader :session

      def initialize(server, session)
        super(server)
        @session = session
      end

      def pubsub = @pubsub ||= Streams.new(__getobj__.pubsub, @session)
      def event_loop = self

      # What is for the event loop is done at once.
      def post
        yield
      end

      def timer(*)
        @session.refuse("a channel does something periodically")
      end

      # The front has the connections.
      def add_connection(_connection) = nil
      def remove_connection(_connection) = nil
    end
  end
end
