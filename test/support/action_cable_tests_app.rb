# frozen_string_literal: true

# An application that has Action Cable's own tests: it runs them in a worker. The folder has the sources of Rails.
#
# `TESTS` in its environment says which: those of an `adapter`, those of clients whose WebSockets are `held` or
# `relayed`, or all `others`. (Those of Action Cable's adapters for Redis and PostgreSQL, and of the package of
# JavaScript, are of no use here.)
#
# /tests?seed=NUMBER&port=PORT:: runs them. Answers with the problems of each test, by its name, as JSON
# else:: WebSockets
module ActionCableTestsApp
  # Paths in the sources.
  PARTS = %w[actioncable/* tools/*].freeze

  CONFIG = <<~RUBY
    require "json"
    require "minitest"
    def Minitest.autorun = nil
    $LOAD_PATH.unshift(__dir__, File.join(__dir__, "actioncable/test"))
    require "test_helper"
    require_relative "own_tests"

    CABLE = { "adapter" => "highball", "url" => ENV["BUS_URL"] }.compact
    SERVER = ActionCable.server
    SERVER.config.cable = CABLE
    SERVER.config.disable_request_forgery_protection = true
    SERVER.config.connection_class = lambda do
      defined?(ClientTest::Connection) ? ClientTest::Connection : ActionCable::Connection::Base
    end

    map("/tests") { run OwnTests }
    map("/") { run ->(env) { ActionCable.server.call(env) } }
  RUBY

  OWN_TESTS = <<~'RUBY'
    # Clients of this application's server in the place of Puma.
    module Served
      class << self
        attr_accessor :port
      end

      # (Action Cable puts another adapter into its server before and after each test.)
      def before_setup = leave_server && super
      def after_teardown = leave_server && super

      def setup
        super
        ActionCable.instance_variable_set(:@server, SERVER) if ENV["TESTS"] == "held"
        ActionCable.server.config.cable = CABLE
      end

      def leave_server = ActionCable.instance_variable_set(:@server, nil) || true
      def with_puma_server(*) = yield(Served.port)
    end

    case ENV["TESTS"]
    when "adapter"
      require "subscription_adapter/common"
      require "subscription_adapter/channel_prefix"
      class HighballAdapterTest < ActionCable::TestCase
        include CommonSubscriptionAdapterTest
        include ChannelPrefixTest

        def cable_config = CABLE
      end
    when "held", "relayed"
      require "client_test"
      ClientTest.prepend(Served)
      ClientTest.send(:remove_const, :WAIT_WHEN_EXPECTING_EVENT)
      ClientTest::WAIT_WHEN_EXPECTING_EVENT = 6 # instead of 2 seconds
    else
      left_out = /(client|redis|postgresql|javascript_package)_test/
      Dir[File.join(__dir__, "actioncable/test/**/*_test.rb")].sort.grep_v(left_out).each { |file| require file }
    end

    module OwnTests
      class Results < Minitest::AbstractReporter
        attr_reader :all

        def initialize
          super
          @all = {}
        end

        def record(result)
          @all["#{result.klass}##{result.name}"] = result.failures.map { |one| "#{one.location}: #{one.message}" }
        end
      end

      def self.call(env)
        query = Rack::Utils.parse_query(env["QUERY_STRING"])
        Served.port = query["port"]
        Minitest.seed = query["seed"].to_i
        use_test_adapter if ENV["TESTS"] == "others"
        results = Results.new
        Minitest::Runnable.runnables.each { |one| one.run(results, {}) }
        [200, { "content-type" => "application/json" }, [JSON.generate(results.all)]]
      end

      # As test_helper.rb has it.
      def self.use_test_adapter
        SERVER.config.cable = { "adapter" => "test" }
        SERVER.restart
      end
    end
  RUBY

  # The part of the gem websocket-client-simple that Action Cable's tests use: Debian doesn't have it.
  CLIENT = <<~'RUBY'
    require "socket"
    require "uri"
    require "websocket"

    module WebSocket
      module Client
        class Simple
          Event = Struct.new(:type, :data)

          def self.connect(url) = new(url).tap { |client| yield client }.tap(&:start)

          def initialize(url)
            @url = url
            @blocks = {}
          end

          def on(event, &block) = @blocks[event] = block

          def start
            uri = URI(@url)
            @socket = TCPSocket.new(uri.host, uri.port)
            handshake = WebSocket::Handshake::Client.new(url: @url)
            @socket.write(handshake.to_s)
            handshake << @socket.readpartial(1) until handshake.finished?
            raise "no WebSocket: #{handshake.error}" unless handshake.valid?

            @version = handshake.version
            @blocks[:open].call
            @thread = Thread.new { receive }
          end

          def send(text) = write(:text, text)

          def close
            write(:close, "")
            @thread.join(2)
            @socket.close
          end

          private

          def write(type, data)
            @socket.write(WebSocket::Frame::Outgoing::Client.new(version: @version, data: data, type: type).to_s)
          end

          def receive
            frames = WebSocket::Frame::Incoming::Client.new(version: @version)
            loop do
              frames << @socket.readpartial(4096)
              while (frame = frames.next)
                @blocks[:message].call(Event.new(frame.type, frame.to_s))
              end
            end
          rescue SystemCallError, IOError
            @blocks[:close].call(nil)
          end
        end
      end
    end
  RUBY

  FILES = { "config.ru" => CONFIG, "own_tests.rb" => OWN_TESTS, "websocket-client-simple.rb" => CLIENT }.freeze
end
