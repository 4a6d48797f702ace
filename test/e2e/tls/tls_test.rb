# frozen_string_literal: true

require_relative "../../support/tls_test_case"

# HTTPS: what clients get, and what they cannot do to others.
class TlsTest < TlsTestCase
  VERSIONS = { "TLSv1.3" => OpenSSL::SSL::TLS1_3_VERSION, "TLSv1.2" => OpenSSL::SSL::TLS1_2_VERSION }.freeze
  ECHO_APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/stream"
        body = Enumerator.new { |pieces| 100.times { |number| pieces << ("%03d" % number * 4000) } }
        [200, { "content-type" => "text/plain" }, body]
      when "/hijack"
        [101, { "upgrade" => "echo", "connection" => "upgrade", "rack.hijack" => lambda { |io|
          Thread.new do
            while (text = io.readpartial(65_536)) do io.write(text.upcase) end
          rescue EOFError
            io.close
          end
        } }, []]
      else
        [200, { "content-type" => "text/plain" }, [env["rack.input"]&.read.to_s]]
      end
    }
  RUBY

  # --- requests

  def test_the_application_knows
    server = serve_tls(folder_with("config.ru" => ENV_APP))
    port = tls_port(server)
    connect_tls(port) do |client|
      env = JSON.parse(client.get("/", { "Host" => "localhost" }).body)
      assert_equal %w[https on 443], env.values_at("rack.url_scheme", "HTTPS", "SERVER_PORT")
      env = JSON.parse(client.get("/", { "Host" => "localhost:#{port}" }).body)
      assert_equal port.to_s, env["SERVER_PORT"]
    end
    plain = JSON.parse(server.get("/").body)
    assert_equal ["http", nil, "80"], plain.values_at("rack.url_scheme", "HTTPS", "SERVER_PORT")
  end

  def test_both_versions_and_no_older_one
    server = serve_tls(folder_with("config.ru" => ECHO_APP))
    port = tls_port(server)
    VERSIONS.each do |name, version|
      connect_tls(port, min: version, max: version) do |client|
        assert_equal name, client.socket.ssl_version
        3.times { |number| assert_equal "body #{number}", client.request("POST", "/", {}, "body #{number}").body }
      end
    end
    [OpenSSL::SSL::TLS1_VERSION, OpenSSL::SSL::TLS1_1_VERSION].each do |version|
      # OpenSSL itself offers these with this setting alone.
      assert_raises(OpenSSL::SSL::SSLError) do
        connect_tls(port, min: version, max: version, ciphers: "ALL:@SECLEVEL=0", verify: false)
      end
    end
    assert_operator server.status.dig("tls", "failed_handshakes"), :>=, 2
  end

  def test_large_bodies_both_ways
    server = serve_tls(folder_with("config.ru" => ECHO_APP), "--max-body", "64m")
    body = Random.bytes(9 * MIB)
    VERSIONS.each_value do |version|
      connect_tls(tls_port(server), max: version) do |client|
        answer = client.request("POST", "/", {}, body)
        assert_equal Digest::SHA256.hexdigest(body), Digest::SHA256.hexdigest(answer.body)
        assert_equal 100 * 12_000, client.get("/stream").body.bytesize
      end
    end
  end

  def test_files
    big = Random.bytes((5 * MIB) + 7)
    app = folder_with("config.ru" => ECHO_APP, "public/big.bin" => big, "public/small.txt" => "small")
    server = serve_tls(app)
    connect_tls(tls_port(server)) do |client|
      assert_equal big, client.get("/big.bin").body
      assert_equal "small", client.get("/small.txt").body
      assert_equal big[100..3_000_000], client.get("/big.bin", { "Range" => "bytes=100-3000000" }).body
    end
  end

  def test_a_client_that_reads_slowly_holds_up_no_other
    big = Random.bytes(40 * MIB)
    server = serve_tls(folder_with("config.ru" => ECHO_APP, "public/big.bin" => big))
    port = tls_port(server)
    slow = tls_socket(port)
    slow.write("GET /big.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    connect_tls(port) { |client| 20.times { assert_equal 200, client.get("/").status } }
    assert_equal big, slow.read.split("\r\n\r\n", 2).last
  ensure
    slow&.close
  end

  # Without a length, only the end of the connection shows that nothing is missing.
  def test_the_end_of_an_answer_differs_from_a_broken_connection
    server = serve_tls(folder_with("config.ru" => ECHO_APP))
    tls = tls_socket(tls_port(server))
    tls.write("GET /stream HTTP/1.0\r\n\r\n")
    assert_equal 1_200_000, tls.read.split("\r\n\r\n", 2).last.bytesize # raises where there is no close_notify
  ensure
    tls&.close
  end

  def test_connections_that_an_application_takes_over
    server = serve_tls(folder_with("config.ru" => ECHO_APP))
    connect_tls(tls_port(server)) do |client|
      client.write("GET /hijack HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
      assert_equal 101, client.read_response(head: true).status
      text = "abc" * 200_000
      writer = Thread.new { client.write(text) }
      assert_equal text.upcase, client.read_bytes(text.bytesize)
      writer.join
    end
  end

  def test_the_proxy_protocol_comes_first
    options = %w[--proxy-protocol v1,v2 --proxy-protocol-from 127.0.0.1]
    preface = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n"
    server = serve_tls(folder_with("config.ru" => ENV_APP), *options, preface: preface)
    connect_tls(tls_port(server), preface: preface) do |client|
      env = JSON.parse(client.get("/").body)
      assert_equal %w[192.0.2.7 https], env.values_at("REMOTE_ADDR", "rack.url_scheme")
    end
  end

  # --- hosts

  def test_a_certificate_for_each_host
    folder = folder_with
    pairs = [certificate_for("one.test", folder: folder, name: "one"),
             certificate_for("two.test", "*.two.test", folder: folder, name: "two"),
             certificate_for("two.test", folder: folder, name: "rsa", key: OpenSSL::PKey::RSA.new(2048))]
    server = serve_tls(folder_with("config.ru" => ECHO_APP), pairs: pairs)
    port = tls_port(server)
    one, two, rsa = pairs.map { |_, _, pair| pair.certificate.serial }
    found = %w[one.test two.test TWO.test a.two.test a.b.two.test three.test].map { |host| serial_for(port, host) }
    assert_equal [one, two, two, two, one, one], found
    assert_equal one, serial_for(port, nil)
    # A client that cannot check elliptic curves.
    tls = tls_socket(port, host: "two.test", max: OpenSSL::SSL::TLS1_2_VERSION, ciphers: "aRSA", verify: false)
    assert_equal rsa, tls.peer_cert.serial
  ensure
    tls&.close
  end

  # --- sending clients to HTTPS

  def test_clients_of_http_are_sent_to_https
    socket = File.join(folder_with, "app.sock")
    server = serve_tls(folder_with("config.ru" => ENV_APP, "public/a.txt" => "a"), "--redirect-https", "on",
                       second_socket: socket)
    port = tls_port(server)
    hosts = { "blog.test" => "blog.test", "blog.test:80" => "blog.test:#{port}", "[::1]:8080" => "[::1]:#{port}" }
    hosts.each do |host, to|
      answer = server.get("/a.txt?b=c", { "Host" => host })
      assert_equal [308, "https://#{to}/a.txt?b=c"], [answer.status, answer["location"]]
    end
    body = "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n"
    answers = server.exchange("POST /form HTTP/1.1\r\nHost: blog.test\r\nContent-Length: #{body.length}\r\n\r\n#{body}")
    assert_equal([[308, "https://blog.test/form"]], answers.map { |answer| [answer.status, answer["location"]] })
    connect_tls(port) { |client| assert_equal "a", client.get("/a.txt").body }
    HttpConnection.unix(socket).use { |client| assert_equal 200, client.get("/").status }
    output = highball_fails("serve", "--redirect-https", "on", folder_with("config.ru" => ENV_APP))
    assert_match(/`redirect_https` needs an address for HTTPS/, output)
  end

  def test_browsers_keep_to_https
    app = <<~RUBY
      run lambda { |env|
        [200, env["PATH_INFO"] == "/own" ? { "Strict-Transport-Security" => "max-age=1" } : {}, ["hello"]]
      }
    RUBY
    server = serve_tls(folder_with("config.ru" => app, "public/a.txt" => "a"), "--hsts", "365d")
    field = "strict-transport-security"
    connect_tls(tls_port(server)) do |client|
      ["/", "/a.txt"].each { |path| assert_equal ["max-age=31536000"], client.get(path).values(field) }
      assert_equal ["max-age=1"], client.get("/own").values(field)
    end
    assert_nil server.get("/")[field]
  end

  # --- sessions

  def test_no_core_file_has_the_keys
    soft, hard = Process.getrlimit(:CORE)
    Process.setrlimit(:CORE, hard)
    server = serve_tls(folder_with("config.ru" => ENV_APP))
    assert_match(/^Max core file size +0 /, File.read("/proc/#{server.server_pid}/limits"))
  ensure
    Process.setrlimit(:CORE, soft, hard)
  end

  def test_sessions_are_resumed
    server = serve_tls(folder_with("config.ru" => ECHO_APP))
    port = tls_port(server)
    VERSIONS.each_value do |version|
      session = session_after_request(port, max: version)
      2.times { assert resumes?(port, session, max: version) }
    end
  end
end
