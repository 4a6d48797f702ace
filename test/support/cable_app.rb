# frozen_string_literal: true

# An application of Action Cable without Rails, as a config.ru. `more`: further Ruby.
#
# /cable?name=NAME:: WebSockets. `evil` is not authorized; `broken` raises an exception
# /broadcast?to=STREAM:: broadcasts the text in the request's body, `times` times, with its number in the place of `%`
# /disconnect?name=NAME:: disconnects the clients of this name
# /events:: what has happened in all workers, a line each
# /adapter:: the name of the adapter
module CableApp
  CHANNEL = <<~'RUBY'
    require "concurrent"
    require "action_cable"
    require "global_id"
    require "logger"
    require "active_support/core_ext/object/to_query"

    EVENTS = File.expand_path("events.txt", __dir__)

    class Events
      def self.note(text) = File.write(EVENTS, "#{text}\n", mode: "a")
    end

    # A record: only its id goes through the front.
    class User
      include GlobalID::Identification
      attr_reader :id

      def initialize(id) = @id = id
      def self.find(id) = id == "gone" ? raise("there is no such user") : new(id)
      def ==(other) = other.is_a?(User) && other.id == id
    end
    GlobalID.app = "cable-app"

    class Connection < ActionCable::Connection::Base
      identified_by :user

      def connect
        name = request.params["name"]
        reject_unauthorized_connection if name == "evil"
        raise "broken" if name == "broken"

        self.user = User.new(name || "guest")
        @greeting = "hello"
        logger.add_tags("cable", user.id)
        Events.note("connected #{user.id}")
      end

      def disconnect = Events.note("disconnected #{user&.id}")
    end

    class RoomChannel < ActionCable::Channel::Base
      def subscribed
        return reject if params[:room] == "forbidden"

        stream_from(room)
      end

      def unsubscribed = Events.note("unsubscribed #{user.id} #{room}")
      def say(data) = ActionCable.server.broadcast(data["to"] || room, { text: data["text"], pid: Process.pid })
      def count = transmit({ text: (@count = @count.to_i + 1).to_s, pid: Process.pid })
      def echo(data) = transmit(data)
      def join(data) = stream_from(data["room"])
      def leave(data) = stop_stream_from(data["room"])
      def leave_all = stop_all_streams
      def fail = raise("boom")
      def nap(data) = sleep(data["seconds"]) && transmit({ text: "awake" })
      def hang_up = connection.close(reason: "enough", reconnect: false)

      def who
        transmit({ text: "#{user.id} #{connection.instance_variable_get(:@greeting)}",
                   user_agent: connection.env["HTTP_USER_AGENT"], cookie: connection.env["HTTP_COOKIE"],
                   path: connection.env["PATH_INFO"], tags: logger.tags,
                   marks: connection.env.keys.grep(/highball\.cable|HTTP_HIGHBALL/i).sort })
      end

      private

      def room = params[:room] || "room"
    end
  RUBY

  SERVER = <<~'RUBY'

    ActionCable.server.config.tap do |config|
      config.cable = { "adapter" => "highball" }
      config.logger = Logger.new(File.expand_path("cable.log", __dir__))
      config.connection_class = -> { Connection }
      config.disable_request_forgery_protection = true
      config.worker_pool_size = 1 # which keeps the order of commands, also without Highball
    end

    map("/cable") { run ActionCable.server }
    run(lambda do |env|
      query = Rack::Utils.parse_query(env["QUERY_STRING"])
      case env["PATH_INFO"]
      when "/broadcast"
        text = env["rack.input"].read
        query.fetch("times", 1).to_i.times do |number|
          ActionCable.server.broadcast(query.fetch("to", "room"), { text: text.sub("%", number.to_s) })
        end
      when "/disconnect" then ActionCable.server.disconnect(user: User.new(query["name"]))
      when "/events" then text = File.exist?(EVENTS) ? File.read(EVENTS) : ""
      when "/adapter" then text = ActionCable.server.config.cable["adapter"]
      end
      [200, { "content-type" => "text/plain" }, [text.to_s]]
    end)
  RUBY

  def self.config(more = "", adapter: "highball")
    "#{CHANNEL}\n#{more}\n#{SERVER.sub('"highball"', adapter.inspect)}"
  end
end
