# frozen_string_literal: true

require_relative "e2e_test"
require_relative "http2_client"

# A test of a server that speaks HTTP/2 without TLS.
class Http2TestCase < E2ETest
  CLEARTEXT = %w[--http2-cleartext on].freeze

  private

  def serve_http2(app = "probe", *options, **settings) = serve(app, *CLEARTEXT, *options, **settings)

  # A connection, or its block's value.
  def http2(server = @server, settings = {}, &block)
    Http2Client.tcp(server.port).greet(settings).use(&block)
  end

  # A file of `public` beside the probe.
  def probe_with(files)
    folder_with({ "config.ru" => <<~RUBY }.merge(files))
      require #{File.join(HighballServer::APPS, 'probe/probe').dump}
      run Probe.new
    RUBY
  end

  def targets(server) = JSON.parse(server.get("/count?targets=1").body).fetch("targets")
end
