# frozen_string_literal: true

require_relative "e2e_test"
require_relative "fastcgi_client"
require_relative "lsapi_client"

# A test of a server with three addresses: one for each protocol.
class GatewayTestCase < E2ETest
  CLIENTS = { "fastcgi" => FastcgiClient, "lsapi" => LsapiClient }.freeze
  BINDS = CLIENTS.keys.flat_map { |protocol| ["-b", "#{protocol}://127.0.0.1:0"] }.freeze
  # What web servers report of a client that connects over HTTP to the server itself.
  LOCAL = { "REMOTE_ADDR" => "127.0.0.1" }.freeze

  private

  # The application of test/apps/probe, with these files beside it.
  def probe_with(files = {})
    folder_with({ "config.ru" => <<~RUBY }.merge(files))
      require #{File.join(HighballServer::APPS, 'probe/probe').dump}
      run Probe.new
    RUBY
  end

  def serve_all(app, *options, **settings)
    serve(app, *BINDS, *options, **settings)
  end

  # The TCP port for a protocol.
  def port_of(server, protocol)
    @ports ||= {}
    @ports[[server, protocol]] ||=
      server.status["binds"].filter_map { |bind| bind[%r{\A#{protocol}://127\.0\.0\.1:(\d+)\z}, 1] }.first.to_i
  end

  # A connection of a web server, or its block's value.
  def gateway(server, protocol, &block)
    CLIENTS.fetch(protocol).tcp(port_of(server, protocol)).use(&block)
  end

  # Runs the block for each protocol, with a connection.
  def with_each(server)
    CLIENTS.each_key { |protocol| gateway(server, protocol) { |connection| yield connection, protocol } }
  end

  def counts(server) = JSON.parse(server.get("/count?targets=1").body)

  def targets(server) = counts(server).fetch("targets")

  # The resident memory of the process that reads what clients send.
  def resident_bytes(server)
    File.read("/proc/#{server.server_pid}/status")[/^VmRSS:\s+(\d+) kB/, 1].to_i * 1024
  end

  # The server still answers, by the process that it began with.
  def assert_well(server, pid)
    assert_equal pid, server.server_pid
    assert_equal 200, server.get("/").status
    with_each(server) { |connection, protocol| assert_equal 200, connection.get("/").status, protocol }
  end
end
