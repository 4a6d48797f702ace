# frozen_string_literal: true

# marks: debian13

require_relative "../../support/e2e_test"
require_relative "../../support/web_server"

# Action Cable on two machines (two servers, each with its own copy of the application), with Redis between them.
class CableMachinesTest < E2ETest
  BOOTS_WITHIN = 120 # seconds
  ANSWERS_WITHIN = 60 # seconds, on a machine that has much else to do
  FIELDS = "Host: test\r\nOrigin: http://test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
           "Sec-WebSocket-Protocol: actioncable-v1-json\r\n"
  CHANNEL = <<~RUBY
    class RoomChannel < ApplicationCable::Channel
      def subscribed = stream_from("room")
      def say(data) = ActionCable.server.broadcast("room", { text: data["text"] })
    end
  RUBY
  IDENTIFIER = JSON.generate({ channel: "RoomChannel" })

  # A client of Action Cable.
  class Client
    def initialize(server)
      @connection = server.connect.write("GET /cable HTTP/1.1\r\n#{FIELDS}\r\n")
      status = @connection.read_response.status
      raise "no WebSocket: #{status}" unless status == 101
    end

    def subscribe
      command("subscribe")
      read_until { |message| message["type"] == "confirm_subscription" }
      self
    end

    def say(text) = command("message", data: JSON.generate({ action: "say", text: text }))

    # The next text that was broadcast.
    # (The message of a ping is a number.)
    def heard = read_until { |message| message["type"].nil? }.dig("message", "text")

    def close = @connection.close

    private

    # A frame with a mask of zeros, which changes no byte.
    def command(name, **more)
      text = JSON.generate({ command: name, identifier: IDENTIFIER, **more })
      @connection.write([0x81, 0x80 | 126, text.bytesize].pack("CCn") + ("\0" * 4) + text)
    end

    # (Pings come all the time.)
    def read_until
      Deadline.wait("a message", within: ANSWERS_WITHIN) do
        message = read
        message if yield message
      end
    end

    def read
      _, length = @connection.read_bytes(2).unpack("CC")
      length = @connection.read_bytes(2).unpack1("n") if length == 126
      JSON.parse(@connection.read_bytes(length))
    end
  end

  def test_a_broadcast_reaches_the_clients_of_both_machines
    start_redis
    servers = Array.new(2) { serve(app, "--boot-timeout", "#{BOOTS_WITHIN}s", workers: 2, within: BOOTS_WITHIN) }
    clients = servers.map { |server| Client.new(server).subscribe }
    clients.zip(%w[one two]) do |client, text|
      client.say(text)
      assert_equal([text] * 2, clients.map(&:heard))
    end
  ensure
    clients&.each(&:close)
    stop_redis
  end

  private

  def app
    copy_of_example("blog").tap do |blog|
      File.write(File.join(blog, "app/channels/room_channel.rb"), CHANNEL)
      File.write(File.join(blog, "config/cable.yml"), <<~YAML)
        production:
          adapter: redis
          url: redis://127.0.0.1:#{redis_port}/1
          channel_prefix: blog_production
      YAML
    end
  end

  def redis_port = @redis_port ||= free_port

  def start_redis
    needs("redis-server")
    skip "the gem redis is not installed" if Gem::Specification.find_all_by_name("redis").empty?
    @redis = Process.spawn("redis-server", "--port", redis_port.to_s, "--bind", "127.0.0.1", "--save", "",
                           "--dir", folder_with, %i[in out err] => File::NULL)
    wait_for("Redis") { FreePort.taken?(redis_port) }
  end

  def stop_redis
    return unless @redis

    Process.kill("KILL", @redis)
    Process.wait(@redis)
    @redis = nil
  end
end
