# frozen_string_literal: true

require "open3"
require "zlib"
require_relative "../../support/http2_client"
require_relative "../../support/tls_test_case"

# HTTP/2 over TLS, which clients choose in the handshake (RFC 7301).
class Http2TlsTest < TlsTestCase
  VERSIONS = [OpenSSL::SSL::TLS1_3_VERSION, OpenSSL::SSL::TLS1_2_VERSION].freeze
  # What curl prints at the end.
  WRITTEN = "%{http_version} %{http_code}" # rubocop:disable Style/FormatStringToken -- curl's
  LARGE = Random.new(1).bytes((3 * MIB) + 17)
  APP = <<~'RUBY'
    require "digest"
    require "json"

    HTML = { "content-type" => "text/html" }.freeze
    PAGE = Array.new(2000) { |row| "<tr><td>row #{row * 7919 % 1013}</td></tr>\n" }.join
    ECHO = lambda do |socket|
      Thread.new do
        loop { socket.write(socket.readpartial(100_000)) }
      rescue SystemCallError, IOError
        socket.close
      end
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/env" then [200, {}, [env.select { |_, value| value.is_a?(String) }.to_json]]
      when "/upload" then [200, {}, [Digest::SHA256.hexdigest(env["rack.input"].read)]]
      when "/page" then [200, HTML, [PAGE]]
      when "/parts" then [200, HTML, PAGE.lines.each_slice(100).map(&:join)]
      when "/random" then [200, {}, [Random.new(env["QUERY_STRING"].to_i).bytes(2_000_000)]]
      when "/echo" then [101, { "upgrade" => "websocket", "connection" => "Upgrade", "rack.hijack" => ECHO }, []]
      else [200, {}, ["hello\n"]]
      end
    }
  RUBY

  # --- the choice

  def test_clients_choose_the_protocol
    port = tls_port(serve_app)
    choices = { %w[h2 http/1.1] => "h2", %w[http/1.1 h2] => "h2", %w[h2] => "h2",
                %w[http/1.1] => "http/1.1", nil => nil }
    VERSIONS.each do |version|
      choices.each do |offered, chosen|
        tls = tls_socket(port, alpn: offered, max: version)
        assert_equal [chosen, "hello\n"], [tls.alpn_protocol, hello(tls)], [offered, version]
      end
      assert_raises(OpenSSL::SSL::SSLError) { tls_socket(port, alpn: %w[spdy/3], max: version) }
    end
  end

  def test_curl_speaks_it
    @server = serve_app("--hsts", "1h", "--access-log", "-")
    output = curl("/upload", "--data-binary", "@-", "-w", WRITTEN, stdin: LARGE)
    assert_equal "#{Digest::SHA256.hexdigest(LARGE)}2 200", output
    assert_equal "hello\n1.1 200", curl("/", "--http1.1", "-w", WRITTEN)
    assert_match(/^strict-transport-security: max-age=3600\r$/, curl("/", "--head"))
    wait_for("the access log") { @server.log.include?('"POST /upload HTTP/2.0" 200') }
  end

  def test_the_application_knows
    http2 do |client|
      env = JSON.parse(get(client, 1, "/env").body)
      names = %w[SERVER_PROTOCOL rack.url_scheme HTTPS SERVER_NAME SERVER_PORT]
      assert_equal %w[HTTP/2 https on localhost 443], env.values_at(*names)
    end
  end

  def test_the_proxy_protocol_comes_first
    options = %w[--proxy-protocol v1 --proxy-protocol-from 127.0.0.1]
    @server = serve_app(*options, preface: "PROXY UNKNOWN\r\n")
    http2(preface: "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n") do |client|
      env = JSON.parse(get(client, 1, "/env").body)
      assert_equal %w[192.0.2.7 https], env.values_at("REMOTE_ADDR", "rack.url_scheme")
    end
  end

  # --- answers

  def test_files
    http2 do |client|
      assert_equal LARGE, get(client, 1, "/large.bin").body
      part = get(client, 3, "/large.bin", "range" => "bytes=100-2000000")
      assert_equal [206, LARGE[100..2_000_000]], [part.status, part.body]
    end
  end

  def test_compressed_answers
    head, = curl("/page", "-i", "-H", "Accept-Encoding: gzip").b.split("\r\n\r\n", 2)
    assert_match(/^content-encoding: gzip\r?$/, head)
    page = curl("/page")
    assert_equal [page] * 2, (["/page", "/parts"].map { |path| curl(path, "--compressed") })
    http2 do |client|
      ["/page", "/parts"].each_with_index do |path, number|
        body = get(client, 1 + (2 * number), path, "accept-encoding" => "gzip").body
        assert_equal page, Zlib.gunzip(body)
        assert_operator body.bytesize, :<, page.bytesize / 2
      end
    end
  end

  # What the socket does not take at once is encrypted already, and must be sent as it is.
  def test_a_client_that_reads_slowly
    http2({ Http2Client::INITIAL_WINDOW_SIZE => 8 * MIB }) do |client|
      client.takes = false
      client.give(0, 64 * MIB)
      streams = Array.new(5) { |number| 1 + (2 * number) }
      streams.each { |stream| client.send_request(stream, "GET", "/random?#{stream}") }
      client.send_request(11, "GET", "/large.bin")
      http2 { |other| assert_equal "hello\n", get(other, 1, "/").body }
      streams.each { |stream| assert_equal Random.new(stream).bytes(2_000_000), client.answer(stream).body }
      assert_equal LARGE, client.answer(11).body
    end
  end

  def test_web_sockets
    http2 do |client|
      fields = { ":protocol" => "websocket", "sec-websocket-version" => "13" }
      client.write_frame(Http2Client::HEADERS, Http2Client::END_HEADERS, 1, client.head("CONNECT", "/echo", fields))
      client.read_until { client.part(1).statuses == [200] }
      client.write_frame(Http2Client::DATA, 0, 1, "\x81\x05hello")
      client.read_until { client.part(1).body == "\x81\x05hello".b }
    end
  end

  # --- the end

  # TLS has its own end of a connection, without which OpenSSL reports a broken one.
  def test_an_idle_connection_ends_in_order
    @server = serve_app("--idle-timeout", "1s")
    http2 do |client|
      assert_equal "hello\n", get(client, 1, "/").body
      assert_equal Http2Client::NO_ERROR, client.read_to_end
    end
  end

  def test_clients_that_choose_it_and_speak_something_else
    port = tls_port(server)
    ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", Random.bytes(5000)].each do |bytes|
      Http2Client.new(tls_socket(port, alpn: %w[h2])).use { |client| read_to_end(client.write(bytes)) }
    end
    http2 { |client| assert_equal "hello\n", get(client, 1, "/").body }
    wait_for("the end of all connections") { server.status["connections"].zero? }
  end

  # --- clients without TLS

  def test_clients_of_http_2_without_tls_are_sent_to_https
    @server = serve_app("--http2-cleartext", "on", "--redirect-https", "on")
    written = "#{WRITTEN} %{redirect_url}" # rubocop:disable Style/FormatStringToken -- curl's
    from = "http://127.0.0.1:#{server.port}"
    output, status = Open3.capture2("curl", "-sS", "--http2-prior-knowledge", "--data-binary", "@-", "-w", written,
                                    "#{from}/a?b=c", stdin_data: "body")
    assert_predicate status, :success?
    assert_equal "2 308 https://127.0.0.1:#{tls_port(server)}/a?b=c", output
  end

  private

  def server = @server ||= serve_app

  def serve_app(*options, **settings)
    serve_tls(folder_with("config.ru" => APP, "public/large.bin" => LARGE), *options, **settings)
  end

  # A connection, or its block's value.
  def http2(settings = {}, **options, &block)
    Http2Client.new(tls_socket(tls_port(server), alpn: %w[h2], **options)).greet(settings).use(&block)
  end

  def get(client, stream, path, fields = {})
    client.send_request(stream, "GET", path, fields, authority: "localhost")
    client.answer(stream)
  end

  # What a client gets by the protocol that it has chosen.
  def hello(tls)
    return HttpConnection.new(tls).use { |client| client.get("/").body } unless tls.alpn_protocol == "h2"

    Http2Client.new(tls).greet.use { |client| get(client, 1, "/").body }
  end

  def curl(path, *options, stdin: "")
    port = tls_port(server)
    @authority_file ||= File.join(folder_with("authority.pem" => authority.certificate.to_pem), "authority.pem")
    output, errors, status =
      Open3.capture3("curl", "-sS", "--http2", "--cacert", @authority_file, "--resolve", "localhost:#{port}:127.0.0.1",
                     *options, "https://localhost:#{port}#{path}", stdin_data: stdin, binmode: true)
    assert_predicate status, :success?, errors
    output.force_encoding(Encoding::UTF_8)
  end

  def read_to_end(client)
    client.read_to_end
  rescue OpenSSL::SSL::SSLError
    # without the end that TLS has
  end
end
