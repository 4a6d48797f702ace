# frozen_string_literal: true

require_relative "../../support/http2_test_case"

# WebSockets on streams of HTTP/2 (RFC 8441). Applications know those of HTTP/1, and see no difference.
class Http2WebSocketTest < Http2TestCase
  RESTARTED = [0x88, 2, 0x03, 0xf4].pack("C*") # a close frame with status 1012
  FIELDS = { ":protocol" => "websocket", "sec-websocket-version" => "13", "origin" => "http://test" }.freeze
  HELLO = "\x81\x05hello".b

  # Accepts WebSockets in both ways and sends back what comes, or does not accept them.
  ECHO = <<~'RUBY'
    HEAD = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
           "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    echo = lambda do |socket|
      Thread.new do
        loop { socket.write(socket.readpartial(100_000)) }
      rescue SystemCallError, IOError
        socket.close
      end
    end
    run(lambda do |env|
      names = %w[REQUEST_METHOD HTTP_CONNECTION HTTP_UPGRADE HTTP_SEC_WEBSOCKET_KEY HTTP_SEC_WEBSOCKET_VERSION]
      warn "seen: #{env.values_at(*names).inspect}"
      case env["PATH_INFO"]
      when "/full"
        socket = env["rack.hijack"].call
        HEAD.each_char { |byte| socket.write(byte) }
        echo.call(socket)
        [-1, {}, []]
      when "/partial"
        [101, { "upgrade" => "websocket", "connection" => "Upgrade", "rack.hijack" => echo }, []]
      when "/garbage"
        env["rack.hijack"].call.write("hello\r\n\r\n")
        [-1, {}, []]
      when "/forbidden" then [403, {}, ["no\n"]]
      else [200, {}, ["ok"]]
      end
    end)
  RUBY

  def setup
    super
    @server = serve_http2(folder_with("config.ru" => ECHO), "--hijacked-drain-timeout", "1s")
  end

  %w[/full /partial].each do |path|
    define_method("test_both_directions_of_#{path.delete('/')}") do
      http2 do |client|
        assert_equal 1, client.server_settings.fetch(Http2Client::ENABLE_CONNECT_PROTOCOL)
        connect(client, 1, path)
        client.read_until { client.part(1).statuses == [200] }
        client.write_frame(Http2Client::DATA, 0, 1, HELLO)
        client.read_until { client.part(1).body == HELLO }
        client.send_request(3, "GET", "/") # other streams go on
        assert_equal "ok", client.answer(3).body
        client.write_frame(Http2Client::DATA, Http2Client::END_STREAM, 1, HELLO)
        answer = client.answer(1)
        assert_equal [[200], HELLO * 2, true], [answer.statuses, answer.body, answer.is_complete]
      end
    end
  end

  def test_the_application_sees_a_websocket_of_http_1
    http2 do |client|
      connect(client, 1, "/full")
      client.read_until { client.part(1).statuses.any? }
    end
    expected = ["GET", "upgrade", "websocket", "dGhlIHNhbXBsZSBub25jZQ==", "13"]
    wait_for("the request") { @server.log.include?("seen: #{expected.inspect}") }
  end

  def test_what_is_sent_ahead_is_not_lost
    http2 do |client|
      connect(client, 1, "/full")
      client.write_frame(Http2Client::DATA, 0, 1, HELLO)
      client.read_until { client.part(1).body == HELLO }
    end
  end

  # Neither the client's nor the application's side goes on without the other: windows and buffers are bounded.
  def test_much_data_in_both_directions
    http2 do |client|
      connect(client, 1, "/full")
      data = Random.new(1).bytes(2 * MIB)
      client.send_body(1, data, is_complete: false)
      client.read_until(within: 60) { client.part(1).body.bytesize == data.bytesize }
      assert_equal Digest::SHA256.hexdigest(data), Digest::SHA256.hexdigest(client.part(1).body)
    end
  end

  def test_what_is_no_websocket
    http2 do |client|
      connect(client, 1, "/forbidden")
      connect(client, 3, "/")
      connect(client, 5, "/garbage")
      connect(client, 7, "/", FIELDS.merge(":protocol" => "connect-udp"))
      answers = [1, 3, 7].map { |stream| client.answer(stream).status }
      assert_equal [403, 502, 501], answers, "a status of 200 would accept it"
      assert_equal [[], 2], client.answer(5).to_a.values_at(0, 2)
      assert_equal 200, client.ask(9, "GET", "/").status
    end
  end

  def test_it_ends_with_its_client
    http2 do |client|
      connect(client, 1, "/full")
      client.read_until { client.part(1).statuses.any? }
      assert_equal 1, @server.status["hijacked"]
      client.reset(1)
      wait_for("its end") { @server.status["hijacked"].zero? }
    end
  end

  def test_it_is_closed_as_one_when_the_server_stops
    client = http2
    connect(client, 1, "/full")
    client.read_until { client.part(1).statuses.any? }
    @server.signal("TERM")
    client.read_until { client.part(1).body == RESTARTED || client.part(1).over? }
    assert_equal RESTARTED, client.part(1).body
    assert_equal Http2Client::NO_ERROR, client.read_to_end
  ensure
    client&.close
  end

  def test_action_cable
    server = serve_http2(copy_of_example("blog"))
    http2(server) do |client|
      connect(client, 1, "/cable", FIELDS.merge("sec-websocket-protocol" => "actioncable-v1-json"))
      client.read_until { client.part(1).body.include?("welcome") }
      assert_equal [200], client.part(1).statuses
    end
  end

  private

  def connect(client, stream, path, fields = FIELDS)
    client.write_frame(Http2Client::HEADERS, Http2Client::END_HEADERS, stream, client.head("CONNECT", path, fields))
  end
end
