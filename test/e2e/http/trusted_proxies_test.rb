# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/behind_web_servers"
require_relative "../../support/env_mirror"

# Proxies that speak HTTP: applications believe what a trusted one reports, and get nothing of what others report.
class TrustedProxiesTest < E2ETest
  include BehindWebServers
  include EnvMirror

  PROXY = "127.0.0.1"
  VISITOR = "127.0.0.9"
  CLIENT = "192.0.2.7"
  FORGED = "203.0.113.66"
  REPORTS = {
    "X-Forwarded-For" => FORGED, "X-Forwarded-Proto" => "https", "X-Forwarded-Host" => "evil.example",
    "X-Forwarded-Port" => "443", "X-Forwarded-Ssl" => "on", "Forwarded" => "for=#{FORGED};proto=https",
    "X-Real-IP" => FORGED, "Client-IP" => FORGED, "True-Client-IP" => FORGED
  }.freeze

  def test_a_trusted_proxy_reports_clients_and_their_scheme
    connect_from(mirror, PROXY) do |proxy|
      env = env_by(proxy, "X-Forwarded-For" => CLIENT, "X-Forwarded-Proto" => "https", "Host" => "blog.example")
      assert_equal [CLIENT, "https", "443"], env.values_at("REMOTE_ADDR", "rack.url_scheme", "SERVER_PORT")
      assert_equal CLIENT, env["HTTP_X_FORWARDED_FOR"]
      # The next request on the same connection is the proxy's own, and the one after it another client's.
      assert_equal [PROXY, "http"], env_by(proxy).values_at("REMOTE_ADDR", "rack.url_scheme")
      assert_equal "2001:db8::7", env_by(proxy, "Forwarded" => 'for="[2001:db8::7]:4711"')["REMOTE_ADDR"]
    end
  end

  def test_what_clients_send_through_it_is_not_believed
    connect_from(mirror, PROXY) do |proxy|
      assert_equal CLIENT, env_by(proxy, "X-Forwarded-For" => "#{FORGED}, #{CLIENT}, #{PROXY}")["REMOTE_ADDR"]
      env = env_by(proxy, "X-Forwarded-For" => CLIENT, "Forwarded" => "for=#{FORGED};proto=https")
      assert_equal [CLIENT, "http", nil], env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTP_FORWARDED")
      assert_equal PROXY, env_by(proxy, "X-Forwarded-For" => "#{FORGED}, unknown")["REMOTE_ADDR"]
    end
    connect_from(mirror, PROXY) do |proxy| # of a quoted string that the client has begun, no end is known
      answer = proxy.write(request("Forwarded" => "for=\"#{FORGED}, for=#{CLIENT}")).read_response
      assert_equal 400, answer.status
      assert_includes answer.body, "the Forwarded field is malformed"
    end
  end

  def test_what_others_report_reaches_no_application
    connect_from(mirror, VISITOR) do |visitor|
      env = env_by(visitor, REPORTS.merge("X-Other" => "1", "Via" => "1.1 proxy"))
      assert_equal [VISITOR, "http", "80"], env.values_at("REMOTE_ADDR", "rack.url_scheme", "SERVER_PORT")
      assert_equal(%w[1], env.values_at("HTTP_X_OTHER"))
      assert_empty(env.select { |_, value| value.include?(FORGED) || value.include?("evil.example") })
      assert_empty(env.keys.grep(/FORWARDED|CLIENT_IP|REAL_IP/))
    end
  end

  def test_without_the_option_applications_judge_for_themselves
    connect_from(serve(folder_with("config.ru" => APP)), VISITOR) do |visitor|
      env = env_by(visitor, REPORTS)
      assert_equal [VISITOR, FORGED, "http"], env.values_at("REMOTE_ADDR", "HTTP_X_FORWARDED_FOR", "rack.url_scheme")
    end
  end

  def test_peers_of_a_unix_socket_are_trusted
    socket = File.join(folder_with, "highball.sock")
    serve(folder_with("config.ru" => APP), "--trusted-proxies", "192.0.2.1", bind: socket)
    HttpConnection.unix(socket).use do |proxy|
      assert_equal CLIENT, env_by(proxy, "X-Forwarded-For" => CLIENT)["REMOTE_ADDR"]
    end
  end

  def test_behind_nginx
    proxy = start_web_server("nginx", <<~CONF)
      server {
        listen 80;
        location / {
          proxy_pass http://127.0.0.1:#{mirror.port};
          proxy_set_header Host $host;
          proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
          proxy_set_header X-Forwarded-Proto $scheme;
        }
      }
    CONF
    proxy.connect(from: VISITOR) do |visitor|
      env = env_by(visitor, "X-Forwarded-For" => FORGED, "Forwarded" => "for=#{FORGED}")
      assert_equal [VISITOR, "http", nil], env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTP_FORWARDED")
    end
  end

  def test_the_access_log_names_the_client
    log = File.join(folder_with, "access.log")
    server = mirror("--access-log", log)
    connect_from(server, PROXY) { |proxy| env_by(proxy, "X-Forwarded-For" => CLIENT) }
    wait_for("the access log") { File.exist?(log) && File.read(log).match?(/^#{CLIENT} /o) }
  end

  # A visitor whom a proxy reports at an address of this machine is no developer.
  def test_visitors_behind_it_get_no_diagnosis
    server = mirror("--show-diagnosis", "local", environment: "development")
    { { "X-Forwarded-For" => "127.0.0.1" } => false, {} => true }.each do |fields, is_developer|
      connect_from(server, PROXY) do |proxy|
        answer = proxy.write(request({ "Host" => "localhost", **fields }, "/raise")).read_response
        assert_equal is_developer, answer.body.include?("the secret reason"), fields.to_s
      end
    end
  end

  private

  def mirror(*options, environment: "production")
    serve(folder_with("config.ru" => APP), "--trusted-proxies", PROXY, *options, environment: environment)
  end

  def request(fields, path = "/")
    fields = { "Host" => "probe.localhost" }.merge(fields)
    "GET #{path} HTTP/1.1\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n"
  end

  # What the application learns of a request that is sent on this connection.
  def env_by(connection, fields = {})
    env_of(connection.write(request(fields)).read_response.body)
  end
end
