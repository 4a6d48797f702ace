# frozen_string_literal: true

require "json"
require "stringio"
require_relative "cable_adapter"

module Highball
  # WebSockets of Action Cable that the front holds (crates/front/src/cable.rs). The front asks this process about them,
  # by requests: whether a client may connect, each command, and the end. For each question, the application's
  # connection and channels are made from what the front remembers, asked, and forgotten.
  #
  # In reading order: this file (which requests are questions), Session (the life of a question), Server, Socket and
  # Streams (what the application's objects have in the place of Action Cable's), Carried (what the front remembers) and
  # Demands (what it cannot hold).
  module Cable
    # The application needs something that the front cannot do.
    class Unsupported < StandardError; end

    # The entry by which the front offers to hold a WebSocket, and its value if there are as many as there may be.
    OFFER = "highball.cable_offer"
    FULL = "full"
    # The entry of a question.
    QUESTION = "highball.cable"
    # The field of an answer that is for the front.
    ANSWER = "highball-cable"
    # When clients may try again, in seconds.
    RETRY_AFTER = 5

    require_relative "cable/carried"
    require_relative "cable/demands"
    require_relative "cable/server"
    require_relative "cable/session"
    require_relative "cable/socket"
    require_relative "cable/streams"

    class << self
      # The Action Cable server whose WebSockets can be held: the adapter is Highball's. Or nil.
      attr_reader :server

      # Returns the application, which answers questions of the front as well if it uses Highball's adapter.
      def around(app)
        return app unless (@server = server_with_adapter)

        bus # without its gem, the boot fails
        require "websocket/driver" # as Action Cable does at its first WebSocket
        @problem = Demands.of_channels
        @server.singleton_class.prepend(Offers)
        ::ActionCable::Channel::Base.prepend(HeldStreams)
        ->(env) { env.key?(QUESTION) ? answer(env) : app.call(env) }
      end

      # Brings what other machines broadcast to the hub, if the application has a bus between machines.
      def receive_from_machines(log) = bus&.start(log)

      # The Bus between the application's machines, or nil.
      def bus = @server&.pubsub&.bus

      # Why the front cannot hold the application's WebSockets, as far as it is known. Or nil.
      def problem
        @problem ||= Demands.of_connection(@server.config.connection_class.call)
      end

      # The answer to a request for a WebSocket, if the front is to hold it. nil: Action Cable is to answer.
      def accept(env)
        return if problem || env["HTTP_SEC_WEBSOCKET_VERSION"] != "13" || !::WebSocket::Driver.websocket?(env)
        return busy if env[OFFER] == FULL

        Session.new(@server, env).accept
      rescue Unsupported => e
        @problem = e.message
        warn "highball: Action Cable's WebSockets are given to workers, and close when these restart: #{@problem}"
        nil # Action Cable's own way runs everything again
      end

      private

      def server_with_adapter
        server = CableAdapter.server
        server if server && CableAdapter.name_of(server) == CableAdapter::OWN
      end

      def answer(env)
        question = JSON.parse(env["rack.input"].read)
        [QUESTION, OFFER, "CONTENT_LENGTH"].each { |name| env.delete(name) }
        env["rack.input"] = StringIO.new("".b)
        [200, { ANSWER => "1", "content-type" => "application/json" }, [Session.new(@server, env).answer(question)]]
      end

      def busy
        [503, { "content-type" => "text/plain", "retry-after" => RETRY_AFTER.to_s }, ["Too many WebSockets\n"]]
      end
    end

    # Takes offers of the front.
    module Offers
      def call(env) = (env.key?(OFFER) && Cable.accept(env)) || super
    end
  end
end
