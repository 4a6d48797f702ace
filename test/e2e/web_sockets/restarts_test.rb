# frozen_string_literal: true

require_relative "../../support/http2_client"
require_relative "../../support/tls_test_case"
require_relative "../../support/web_socket_app"

# WebSockets while workers and servers are replaced.
class WebSocketRestartsTest < TlsTestCase
  # Sends back what comes, with its pid, and logs how connections end.
  ECHO = <<~RUBY.freeze
    #{WebSocketApp::BEGINNING}

    class Echo < WebSocketApp
      private

      def hear(text)
        warn "heard \#{text.inspect}"
        @driver.text("\#{Process.pid} \#{text}")
      end

      def finish(code)
        warn "closed with \#{code}"
        @socket.close
      end
    end

    run ->(env) { env["HTTP_UPGRADE"] ? Echo.new(env) && [-1, {}, []] : [200, {}, ["ok"]] }
  RUBY
  WITHIN = 30
  CLOSED = [0x88, 2, 0x03, 0xf4].pack("C*")
  # A client's, with masks of zeros.
  LAST_WORDS = [0x81, 0x84, 0, 0, 0, 0, "last"].pack("C6a*")
  CLOSED_BY_CLIENT = [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xf4].pack("C*")

  # That library takes 1012 for a breach of the protocol (1002), and ends the connection all the same.
  ENDED = /closed with (1012|1002)/
  REQUEST = "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  # A client.
  class Client
    def initialize(connection)
      @connection = connection.write(REQUEST)
      status = connection.read_response.status
      raise "no WebSocket: #{status}" unless status == 101
    end

    # What the application answers.
    def ask(text)
      @connection.write([0x81, 0x80 | text.bytesize, 0, 0, 0, 0, text].pack("C6a*"))
      _, length = @connection.read_bytes(2).unpack("CC")
      @connection.read_bytes(length)
    end

    # Takes the close frame, and answers it: what is sent up to the end.
    def end
      frame = @connection.read_bytes(4)
      frame + @connection.write(CLOSED_BY_CLIENT).read_to_end
    end

    def close = @connection.close
  end

  def setup
    super
    skip "needs websocket-driver" unless Gem::Specification.stubs_for("websocket-driver").any?
    @clients = []
    options = ["--http2-cleartext", "on", "--drain-timeout", "20s"]
    @server = serve_tls(folder_with("config.ru" => ECHO), *options, workers: 2)
  end

  def teardown
    @clients&.each(&:close)
    super
  end

  def test_the_application_sees_the_close_handshake
    clients = [plain, over_tls]
    clients.each { |client| assert_match(/ hello\z/, client.ask("hello")) }
    ends = clients.map { |client| Thread.new { client.end } }
    restart
    assert_equal([CLOSED] * 2, ends.map(&:value))
    wait_for("the ends") { @server.log.scan(ENDED).length == 2 }
    assert_match(/ again\z/, plain.ask("again"))
  end

  def test_over_http2
    ways = [-> { Http2Client.tcp(@server.port) }, -> { Http2Client.new(tls_socket(tls_port(@server), alpn: ["h2"])) }]
    ways.each.with_index(1) do |way, number|
      way.call.greet.use do |client|
        connect_http2(client)
        restarting = Thread.new { restart }
        client.read_until(within: WITHIN) { client.part(1).body.end_with?(CLOSED) }
        answer_close_of(client)
        restarting.join
        client.send_request(3, "GET", "/") # the connection goes on
        assert_equal "ok", client.answer(3).body
      end
      wait_for("the application's end") { @server.log.scan(ENDED).length == number }
      assert_equal number, @server.log.scan('heard "last"').length
    end
  end

  # A client that is closed meets the new version, and is not closed again by the same restart.
  def test_clients_that_connect_again_stay
    settled # both workers serve
    clients = Array.new(12) { plain }
    old = pids_of(clients)
    # A WebSocket that a worker has just accepted may still count as its request as well.
    assert_operator old.values.min, :>=, 4, "they are shared out"
    assert_equal 2, old.length
    again = clients.map { |client| Thread.new { [client.end, plain] } }
    restart
    settled
    ends, again = again.map(&:value).transpose
    assert_equal [CLOSED], ends.uniq
    new = pids_of(again)
    assert_empty new.keys & old.keys
    assert_equal 2, new.length
  end

  def test_when_the_server_stops
    client = plain
    @server.signal("TERM")
    assert_equal CLOSED, client.end
    @server.wait
    assert_match ENDED, @server.log
  end

  def test_hot_restarts
    client = plain
    highball("upgrade", *@server.which, within: 60)
    assert_equal CLOSED, client.end
    wait_for("the application's end") { @server.log.match?(ENDED) }
    assert_match(/ again\z/, plain.ask("again"))
  end

  private

  def plain = client(@server.connect)
  def over_tls = client(connect_tls(tls_port(@server)))

  def client(connection)
    Client.new(connection).tap { |client| @clients << client }
  end

  def connect_http2(client)
    fields = { ":protocol" => "websocket", "sec-websocket-version" => "13" }
    client.write_frame(Http2Client::HEADERS, Http2Client::END_HEADERS, 1, client.head("CONNECT", "/", fields))
    client.read_until(within: WITHIN) { client.part(1).statuses == [200] }
  end

  def answer_close_of(client)
    client.write_frame(Http2Client::DATA, 0, 1, LAST_WORDS + CLOSED_BY_CLIENT)
    client.read_until(within: WITHIN) { client.part(1).is_complete }
    assert client.part(1).body.end_with?(CLOSED), "nothing follows"
  end

  # The numbers of clients by the pids of their workers.
  def pids_of(clients) = clients.map { |client| client.ask("where?")[/\d+/] }.tally

  def settled = wait_for("two workers, and no others") { @server.settled? }

  def restart
    highball("restart", *@server.which, within: 60)
  end
end
