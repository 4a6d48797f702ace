# frozen_string_literal: true

require "openssl"
require_relative "../../support/e2e_test"
require_relative "../../support/behind_web_servers"
require_relative "../../support/env_mirror"

# The PROXY protocol: behind HAProxy, and against peers that do not keep to it.
class ProxyProtocolTest < E2ETest
  include BehindWebServers
  include EnvMirror

  VISITOR = "127.0.0.9"
  V1 = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n"
  V2_START = "\r\n\r\n\0\r\nQUIT\n".b
  LOCAL = "#{V2_START}\x20\0\0\0".b
  ECHO = "GET / HTTP/1.1\r\nHost: probe.localhost\r\n\r\n"
  # HTTP/1.0 needs no Host: SERVER_NAME and SERVER_PORT are then those of the connection.
  OLD_ECHO = "GET / HTTP/1.0\r\n\r\n"

  { "v1" => "send-proxy", "v2" => "send-proxy-v2" }.each do |version, option|
    %w[tcp http].each do |mode|
      define_method("test_haproxy_#{version}_in_mode_#{mode}") do
        proxy = haproxy(mirror(version), "#{option} #{'check' if mode == 'tcp'}", mode: mode)
        2.times { proxy.connect(from: VISITOR) { |visitor| visitor_is_seen(visitor, proxy) } }
      end
    end
  end

  def test_haproxy_with_tls
    needs("haproxy")
    crt = File.join(folder_with("site.pem" => certificate), "site.pem")
    options = "send-proxy-v2-ssl proxy-v2-options ssl,cert-cn,crc32c,authority,unique-id"
    proxy = haproxy(mirror("v1,v2"), options, bind: "ssl crt #{crt}")
    socket = Socket.tcp("127.0.0.1", proxy.port, VISITOR)
    tls = OpenSSL::SSL::SSLSocket.new(socket)
    tls.hostname = "probe.localhost"
    tls.connect
    tls.write(ECHO.sub("\r\n\r\n", "\r\nConnection: close\r\n\r\n"))
    env = env_of(tls.read.split("\r\n\r\n", 2).last)
    assert_equal [VISITOR, "https", "443"], env.values_at("REMOTE_ADDR", "rack.url_scheme", "SERVER_PORT")
  ensure
    socket&.close
  end

  def test_connections_for_the_proxy_itself_have_its_address
    mirror("v2").connect do |proxy|
      assert_equal "127.0.0.1", env_of(proxy.write(ECHO).read_response.body)["REMOTE_ADDR"]
    end
  end

  def test_a_header_in_pieces_with_requests_behind_it
    server = mirror("v1")
    2.times do |number|
      bytes = "#{V1}#{OLD_ECHO}"
      raw(server) do |proxy|
        bytes.each_char.each_slice(1 + (number * 50)) { |piece| proxy.write(piece.join) }
        env = env_of(proxy.read_response.body)
        assert_equal %w[192.0.2.7 198.51.100.1 8443 http],
                     env.values_at("REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT", "rack.url_scheme")
      end
    end
    raw(server) do |proxy| # once for a connection
      answers = proxy.write(V1 + ECHO + ECHO.sub("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).read_all
      assert_equal(%w[192.0.2.7] * 2, answers.map { |answer| env_of(answer.body)["REMOTE_ADDR"] })
    end
    raw(server) { |proxy| assert_equal 400, proxy.write(V1 + V1 + ECHO).read_response.status }
  end

  def test_untrusted_peers_are_closed
    server = mirror("v1", "--proxy-protocol-from", "127.0.0.1")
    connect_from(server, VISITOR) { |peer| assert_closed(peer, V1 + ECHO) }
    connect_from(server, "127.0.0.1") { |peer| assert_equal 200, peer.write(V1 + ECHO).read_response.status }
    reason = "its address is not in `proxy_protocol_from`"
    assert_match(/a connection was closed from=#{VISITOR}.* why="#{reason}"/, server.log)
  end

  def test_peers_of_a_unix_socket_are_trusted
    socket = File.join(folder_with, "highball.sock")
    options = options_for("v1", "--proxy-protocol-from", "192.0.2.1")
    server = serve(folder_with("config.ru" => APP), *options, bind: socket, preface: V1)
    assert_equal "192.0.2.7", env_of(server.get("/").body)["REMOTE_ADDR"]
  end

  def test_what_is_no_header_gets_its_connection_closed
    both = mirror("v1,v2")
    [
      ECHO, "PROXY TCP4 192.0.2.7 198.51.100.1 56324\r\n#{ECHO}", "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n#{ECHO}",
      "PROXY #{'x' * 200}\r\n#{ECHO}", "PROXY UNKNOWN#{' ' * (1 << 20)}", V1.downcase + ECHO,
      "#{V2_START}\x21\x11\0\x0bxxxxxxxxxxx".b + ECHO, "#{V2_START}\x21\x11\xff\xff".b + ("x" * 65_535) + ECHO,
      "#{V2_START}\x31\x11\0\x0c".b + ("x" * 12) + ECHO, "\0" * 1000, "\r\n\r\n#{ECHO}"
    ].each { |bytes| raw(both) { |peer| assert_closed(peer, bytes) } }
    raw(mirror("v2")) { |peer| assert_closed(peer, V1 + ECHO) }
    raw(mirror("v1")) { |peer| assert_closed(peer, LOCAL + ECHO) }
    assert_match(/a connection was closed .*\n +why: the connection begins with no PROXY header/, both.log)
  end

  def test_headers_that_do_not_arrive_whole
    server = mirror("v1,v2", "--head-timeout", "1s")
    silent = Array.new(50) { |number| raw(server).tap { |peer| peer.write(V1[0, number % 45]) } }
    assert_equal 200, server.get("/").status # the others wait for nothing
    silent.each { |peer| assert_closed(peer, "") }
    assert_match(/did not arrive in time/, server.log)
    ["", V1[0, 20], V2_START, "#{V2_START}\x21\x11\0\x0cxxx".b].each do |part|
      raw(server) do |peer| # that goes away
        peer.write(part).socket.close_write
        assert_closed(peer, "")
      end
    end
    wait_for("close of all connections") { server.status["connections"].zero? }
  ensure
    silent&.each(&:close)
  end

  # A visitor whom the proxy reports at an address of this machine is no developer, as with X-Forwarded-For.
  def test_visitors_behind_a_proxy_get_no_diagnosis
    app = folder_with("config.ru" => APP)
    from_here = V1.sub("192.0.2.7", "127.0.0.1")
    server = serve(app, *options_for("v1", "--show-diagnosis", "local"), environment: "development", preface: from_here)
    refute_includes server.get("/raise", { "Host" => "localhost" }).body, "the secret reason"
    direct = serve(app, "--show-diagnosis", "local", environment: "development")
    assert_includes direct.get("/raise", { "Host" => "localhost" }).body, "the secret reason"
  end

  def test_restarts_and_upgrades_keep_it
    server = mirror("v2")
    highball("upgrade", *server.which, env: { "HIGHBALL_CONTROL" => HighballServer::CONTROL })
    raw(server) { |peer| assert_equal 200, peer.write(LOCAL + ECHO).read_response.status }
    raw(server) { |peer| assert_closed(peer, ECHO) }
  end

  private

  def options_for(versions, *others)
    ["--proxy-protocol", versions, *others]
  end

  def mirror(versions, *others)
    own = versions == "v1" ? "PROXY UNKNOWN\r\n" : LOCAL
    serve(folder_with("config.ru" => APP), *options_for(versions, *others), preface: own)
  end

  def haproxy(server, options, mode: "http", bind: "")
    start_web_server("haproxy", <<~CONF)
      defaults
        mode #{mode}
        timeout connect 5s
        timeout client 60s
        timeout server 60s
      frontend visitors
        bind :80 #{bind}
        bind [::]:80 v6only
        default_backend highball
      backend highball
        server highball 127.0.0.1:#{server.port} #{options}
    CONF
  end

  def visitor_is_seen(visitor, proxy)
    2.times { assert_equal VISITOR, env_of(visitor.write(ECHO).read_response.body)["REMOTE_ADDR"] }
    env = env_of(visitor.write(OLD_ECHO).read_response.body)
    assert_equal ["127.0.0.1", proxy.port.to_s, "http"], env.values_at("SERVER_NAME", "SERVER_PORT", "rack.url_scheme")
  end

  # A connection without a header of this test's.
  def raw(server, &block)
    connect_from(server, "127.0.0.1", &block)
  end

  # Without a word: an end, or a reset, as bytes may be left.
  def assert_closed(peer, bytes)
    peer.write(bytes)
    assert_equal "", peer.read_to_end
  rescue Errno::ECONNRESET, Errno::EPIPE
    pass
  end

  # A self-signed certificate with its key.
  def certificate
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=probe.localhost")
    certificate.public_key = key
    certificate.not_before = Time.now - 86_400
    certificate.not_after = Time.now + 86_400
    certificate.sign(key, OpenSSL::Digest.new("SHA256"))
    certificate.to_pem + key.to_pem
  end
end
