# frozen_string_literal: true

require_relative "gateway_test_case"
require_relative "behind_web_servers"

# A test of web servers that pass requests on to Highball over FastCGI, as `highball config` configures them.
class GatewayServerTestCase < GatewayTestCase
  include BehindWebServers

  PROGRAMS = { "nginx" => "nginx", "lighttpd" => "lighttpd", "apache" => "apache2" }.freeze
  HOST = { "Host" => "probe.localhost" }.freeze

  private

  def binds(server)
    server.status["binds"].grep(/\Afastcgi/)
  end

  # A web server in front of this address, with the configuration that `highball config` prints: for an application
  # without a public folder, as nginx would send its files itself.
  def in_front(program, command, bind)
    options = ["--via", "fastcgi", "-b", bind, "--max-body", "2g", "--host", HOST["Host"]]
    start_web_server(command, printed_for(program, *options, folder_with("config.ru" => "")))
  end
end
