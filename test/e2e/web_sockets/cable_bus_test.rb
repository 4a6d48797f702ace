# frozen_string_literal: true

require_relative "../../support/cable_client"
require_relative "../../support/e2e_test"
require_relative "../../support/network_namespace"
require_relative "../../support/redis_server"

# Highball's adapter on two machines (two servers, each with its own copy of the application), with Redis between them.
class CableBusTest < E2ETest
  BOOTS_WITHIN = 120 # seconds
  CHANNEL = "blog_production:room"

  def setup
    super
    skip "redis-server is not installed" unless RedisServer.program
    skip "the gem redis is not installed" if Gem::Specification.find_all_by_name("redis").empty?
    @redis = RedisServer.new(durable: false) unless name.include?("machine_whose")
  end

  def teardown
    super
    @publisher&.close
    @redis&.finish
    @network&.delete
  end

  def test_broadcasts_reach_the_clients_of_both_machines_in_the_same_order
    clients = Array.new(2) { serve_machine }.map { |server| CableClient.new(server).subscribe }
    %w[one two].zip(clients) { |text, client| client.say(text) }
    heard = clients.map { |client| [client.heard, client.heard] }
    assert_equal [%w[one two], heard.first], [heard.first.sort, heard.last]
    publish("three") # in the form of Action Cable's own adapter
    assert_equal(%w[three three], clients.map(&:heard))
  end

  # Whichever worker brings broadcasts in, another one goes on where it ends.
  def test_nothing_is_lost_or_doubled_while_workers_end
    server = serve_machine
    wait_for("the workers that stay") { server.complete? }
    client = CableClient.new(server).subscribe
    heard = heard_while_published(client) do
      4.times do |number|
        HighballServer.kill(server.worker_pids[number % 2])
        wait_for("the next worker") { server.settled? }
      end
      highball("restart", *server.which, within: 120)
      highball("refork", *server.which, within: 120)
    end
    assert_operator heard, :>, 20
  end

  def test_nothing_is_lost_or_doubled_in_a_hot_restart
    server = serve_machine("--drain-timeout", "2s")
    client = CableClient.new(server).subscribe
    heard_while_published(client) { highball("upgrade", *server.which, within: 120) }
  end

  def test_redis_fails_and_returns
    server = serve_machine
    client = CableClient.new(server).subscribe
    publish("before")
    assert_equal "before", client.heard
    @publisher.close
    @publisher = nil
    @redis.kill
    wait_for("the log", within: 60) { server.log.include?("cannot receive broadcasts of other machines") }
    @redis.start
    wait_for("a broadcast to arrive", within: 60) { publish("again") >= 2 }
    publish("after")
    client.heard_until("after")
    client.say("own")
    assert_equal "own", client.heard_until("own").last
  end

  # It is cut off, comes back, and dies in the end. The other one does not notice.
  def test_a_machine_whose_network_fails_and_which_dies
    long
    @network = NetworkNamespace.open or skip "needs root and network namespaces"
    @redis = RedisServer.new(durable: false, address: @network.address)
    other = serve_there
    there, here = [other, serve_machine].map { |one| CableClient.new(one).subscribe }
    there.say("from there")
    assert_equal(["from there"] * 2, [there, here].map(&:heard))
    cut_off(other) { here.say("meanwhile") && assert_equal("meanwhile", here.heard) }
    there.say("again from there")
    [there, here].each { |client| client.heard_until("again from there") }
    HighballServer.kill(-other.pid)
    here.say("alone")
    assert_equal "alone", here.heard_until("alone").last
  end

  def test_doctor_names_a_redis_that_does_not_answer
    app = machine
    @redis.kill
    output, = HighballServer.run("doctor", "-e", "production", app, within: BOOTS_WITHIN)
    assert_match(/the Redis between machines does not answer/, output)
  end

  private

  def serve_machine(*options)
    serve(machine, "--boot-timeout", "#{BOOTS_WITHIN}s", *options, workers: 2, within: BOOTS_WITHIN)
  end

  # A machine whose network fails. When it has noticed, the block runs; then the network is there again.
  def cut_off(machine)
    @network.disconnect
    wait_for("it to notice", within: 60) { machine.log.include?("cannot receive broadcasts of other machines") }
    yield
    @network.reconnect
    wait_for("it to listen", within: 60) { machine.log.include?("receiving broadcasts of other machines again") }
  end

  # On another machine.
  def serve_there
    app = machine
    path = File.join(folder_with, "web.sock")
    command = @network.command(HighballServer::BINARY, "serve", "-b", "unix:#{path}", "-e", "production", "-w", "2",
                               "--boot-timeout", "#{BOOTS_WITHIN}s", app)
    serve(app, bind: path, command: command, within: BOOTS_WITHIN)
  end

  def machine
    copy_of_example("blog").tap do |blog|
      File.write(File.join(blog, "app/channels/room_channel.rb"), CableClient::CHANNEL)
      File.write(File.join(blog, "config/cable.yml"), <<~YAML)
        production:
          adapter: highball
          url: #{@redis.url}
          channel_prefix: blog_production
      YAML
    end
  end

  # Publishes numbers while the block runs. The client hears each once, in their order. Returns how many.
  def heard_while_published(client)
    ended = false
    published = Thread.new do
      (1..).each do |number|
        publish(number.to_s)
        break number if ended

        sleep 0.02
      end
    end
    yield
    ended = true
    last = published.value
    assert_equal (1..last).map(&:to_s), client.heard_until(last.to_s)
    last
  ensure
    ended = true
  end

  # Publishes a text, and returns how many have received it (PUBLISH of Redis).
  def publish(text)
    @publisher ||= TCPSocket.new(@redis.address, @redis.port)
    words = ["PUBLISH", CHANNEL, JSON.generate(text: text)]
    @publisher.write("*#{words.length}\r\n#{words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join}")
    @publisher.gets[/\d+/].to_i
  end
end
