# frozen_string_literal: true

require_relative "../../support/cable_client"
require_relative "../../support/e2e_test"
require_relative "../../support/web_server"

# Action Cable on two machines (two servers, each with its own copy of the application), with Redis between them.
class CableMachinesTest < E2ETest
  BOOTS_WITHIN = 120 # seconds

  def test_a_broadcast_reaches_the_clients_of_both_machines
    start_redis
    servers = Array.new(2) { serve(app, "--boot-timeout", "#{BOOTS_WITHIN}s", workers: 2, within: BOOTS_WITHIN) }
    clients = servers.map { |server| CableClient.new(server).subscribe }
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
      File.write(File.join(blog, "app/channels/room_channel.rb"), CableClient::CHANNEL)
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
