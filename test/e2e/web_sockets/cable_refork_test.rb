# frozen_string_literal: true

require_relative "../../support/cable_client"
require_relative "../../support/e2e_test"

# A worker that has served clients of Action Cable can be forked from: the new workers serve such clients, too.
class CableReforkTest < E2ETest
  BOOTS_WITHIN = 120 # seconds
  WORKERS = 2

  %w[async highball].each do |adapter|
    define_method("test_refork_with_the_adapter_#{adapter}") do
      server = serve_blog(adapter)
      2.times do
        clients = Array.new(2 * WORKERS) { CableClient.new(server).subscribe }
        assert_broadcasts(clients)
        highball("refork", *server.which, within: BOOTS_WITHIN)
        clients.each(&:close)
      end
      clients = Array.new(3 * WORKERS) { CableClient.new(server).subscribe }
      assert_broadcasts(clients)
      clients.each(&:await_ping)
    end
  end

  private

  def serve_blog(adapter)
    app = copy_of_example("blog")
    File.write(File.join(app, "app/channels/room_channel.rb"), CableClient::CHANNEL)
    File.write(File.join(app, "config/cable.yml"), "production:\n  adapter: #{adapter}\n")
    options = ["--boot-timeout", "#{BOOTS_WITHIN}s", "--hijacked-drain-timeout", "1s"]
    serve(app, *options, workers: WORKERS, within: BOOTS_WITHIN)
  end

  # With `async`, a broadcast reaches the clients of the same worker, so in any case the client that has sent it.
  def assert_broadcasts(clients)
    clients.each_with_index do |client, number|
      client.say("from #{number}")
      assert_equal "from #{number}", client.heard_until("from #{number}").last
    end
  end
end
