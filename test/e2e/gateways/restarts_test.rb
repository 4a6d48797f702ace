# frozen_string_literal: true

require_relative "../../support/gateway_test_case"
require_relative "../../support/versioned_app"

# Web servers that keep their connections by FastCGI and LSAPI notice no restart.
class GatewayRestartsTest < GatewayTestCase
  CLIENTS_OF_EACH = 3

  # Each client asks again on its connection, and connects again where that ended between two requests, as web servers
  # do.
  class Asking
    attr_reader :version, :lost

    def initialize(client, port)
      @client = client
      @port = port
      @lost = Queue.new
      @stopping = false
      @thread = Thread.new { ask_until_stopped }
    end

    def stop
      @stopping = true
      @thread.join
    end

    private

    def ask_until_stopped
      connection = nil
      until @stopping
        kept = !connection.nil?
        connection ||= @client.tcp(@port)
        answer = ask(connection)
        # A connection that was kept may end as the next request comes; then nothing of an answer was sent.
        answer ? note(answer) : connection = nil
        @lost << "no answer on a new connection" unless answer || kept
      end
    rescue StandardError => e
      @lost << e.message
    ensure
      connection&.close
    end

    def ask(connection)
      connection.request("POST", "/", {}, "words")
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end

    def note(answer)
      version, words = answer.body.split
      @lost << answer.status unless [answer.status, words] == [200, "words"]
      @version = version
    end
  end

  def test_restarts_and_hot_restarts_lose_nothing
    app = folder_with
    VersionedApp.write(app, 1)
    server = serve_all(app, "--drain-timeout", "5s", workers: 2)
    askers = CLIENTS.flat_map do |protocol, client|
      Array.new(CLIENTS_OF_EACH) { Asking.new(client, port_of(server, protocol)) }
    end
    %w[restart upgrade].each.with_index(2) do |command, version|
      VersionedApp.write(app, version)
      highball(command, *server.which, within: 60)
      askers.each { |asker| wait_for("version #{version}") { asker.version == version.to_s } }
    end
    askers.each(&:stop)
    assert_empty(askers.flat_map { |asker| Array.new(asker.lost.length) { asker.lost.pop } })
  ensure
    askers&.each(&:stop)
  end
end
