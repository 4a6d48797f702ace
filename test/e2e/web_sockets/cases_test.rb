# frozen_string_literal: true

require_relative "../../support/http2_client"
require_relative "../../support/tls_test_case"
require_relative "../../support/web_socket_app"
require_relative "../../support/web_socket_cases"

# What WebSocket clients send right and wrong has the same end through Highball as with the application on Puma: the
# same frames, and the same code at the close.
class WebSocketCasesTest < TlsTestCase
  # Sends back what comes.
  ECHO = <<~RUBY.freeze
    #{WebSocketApp::BEGINNING}

    class Echo < WebSocketApp
      private

      def hear(data) = data.is_a?(String) ? @driver.text(data) : @driver.binary(data)
    end

    run ->(env) { Echo.new(env) && [-1, {}, []] }
  RUBY
  UPGRADE = { "Host" => "test", "Connection" => "Upgrade", "Upgrade" => "websocket", "Sec-WebSocket-Version" => "13",
              "Sec-WebSocket-Key" => "dGhlIHNhbXBsZSBub25jZQ==" }.freeze
  CONNECT = { ":protocol" => "websocket", "sec-websocket-version" => "13" }.freeze
  WITHIN = 30

  def setup
    super
    long
    skip "needs puma and websocket-driver" unless system("puma", "--version", out: File::NULL) && driver?
    @folder = folder_with("config.ru" => ECHO)
    start_puma
    @server = serve_tls(@folder, "--http2-cleartext", "on")
  end

  def teardown
    HighballServer.kill(@puma, "KILL") && Process.wait(@puma) if @puma
    super
  end

  WAYS = { "HTTP/1.1" => :plain, "HTTP/1.1 over TLS" => :over_tls, "HTTP/2" => :http2,
           "HTTP/2 over TLS" => :http2_over_tls }.freeze

  def test_they_end_alike
    expected = ends_of(:straight)
    assert_sane(expected)
    WAYS.each do |name, way|
      ends = ends_of(way)
      different = expected.keys.reject { |test_case| ends[test_case] == expected[test_case] }
      assert_empty(different.map { |test_case| difference(test_case, expected, ends) }, name)
    end
  end

  private

  def driver? = Gem::Specification.stubs_for("websocket-driver").any?

  def start_puma
    @socket = File.join(@folder, "puma.sock")
    @puma = Process.spawn("puma", "-b", "unix://#{@socket}", "-t", "1:8", chdir: @folder, %i[out err] => File::NULL)
    wait_for("Puma", within: 30) { listens? }
  end

  # The socket is there a moment before Puma listens.
  def listens?
    UNIXSocket.new(@socket).close.nil?
  rescue Errno::ENOENT, Errno::ECONNREFUSED
    false
  end

  def difference(test_case, expected, ends)
    "#{test_case}: #{expected[test_case].inspect[0, 200]} became #{ends[test_case].inspect[0, 200]}"
  end

  # What the other side sends in each case, up to its close frame.
  def ends_of(way)
    WebSocketCases.all.to_h do |test_case|
      [test_case.name, method(way).call(test_case.pieces)]
    rescue StandardError => e
      raise e.class, "#{test_case.name}: #{e.message}"
    end
  end

  # The application is what it is taken for.
  def assert_sane(ends)
    echo = [[WebSocketCases::TEXT, "*" * 125], [WebSocketCases::CLOSE, [1000].pack("n")]]
    assert_equal echo, ends["1 text of 125 bytes"]
    assert_equal [WebSocketCases::PONG, "payload-9"], ends["2 ten pings in pieces of a byte"][-2]
    codes = { "3 bits 40 of opcode 1" => 1002, "4 opcode 3, 0 bytes" => 1002, "6 invalid \"\\x80\"" => 1007 }
    codes.each { |name, code| assert_equal code, ends.fetch(name).last.last.unpack1("n"), name }
  end

  def straight(pieces) = over_http1(HttpConnection.unix(@socket), pieces)
  def plain(pieces) = over_http1(HttpConnection.tcp(@server.port), pieces)
  def over_tls(pieces) = over_http1(HttpConnection.new(tls_socket(tls_port(@server))), pieces)
  def http2(pieces) = over_http2(Http2Client.tcp(@server.port), pieces)
  def http2_over_tls(pieces) = over_http2(Http2Client.new(tls_socket(tls_port(@server), alpn: ["h2"])), pieces)

  def over_http1(connection, pieces)
    connection.use do
      answer = connection.send_request("GET", "/", UPGRADE).read_response
      assert_equal 101, answer.status
      bytes = +"".b
      write_all(pieces) { |piece| connection.write(piece) }
      bytes << connection.read_some(within: WITHIN) until closed?(bytes)
      frames_of(bytes)
    end
  end

  def over_http2(client, pieces)
    client.greet.use do
      client.write_frame(Http2Client::HEADERS, Http2Client::END_HEADERS, 1, client.head("CONNECT", "/", CONNECT))
      client.read_until { client.part(1).statuses == [200] }
      write_all(pieces) { |piece| client.send_body(1, piece, is_complete: false) }
      client.read_until(within: WITHIN) { closed?(client.part(1).body) }
      frames_of(client.part(1).body)
    end
  end

  # The other side may have closed the connection before all is written.
  def write_all(pieces, &)
    pieces.each(&)
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  end

  def closed?(bytes) = frames_of(bytes).last&.first == WebSocketCases::CLOSE

  # The frames up to the close frame: opcode and payload.
  def frames_of(bytes)
    frames = []
    at = 0
    while bytes.bytesize >= at + 2 && frames.last&.first != WebSocketCases::CLOSE
      head, length = length_at(bytes, at)
      break if length.nil? || bytes.bytesize < at + head + length

      frames << [bytes.getbyte(at) & 0x0f, bytes.byteslice(at + head, length)]
      at += head + length
    end
    frames
  end

  # The length of the frame's head, and that of its payload if it is there.
  def length_at(bytes, from)
    case (short = bytes.getbyte(from + 1))
    when 126 then [4, bytes.byteslice(from + 2, 2)&.unpack1("n")]
    when 127 then [10, bytes.byteslice(from + 2, 8)&.unpack1("Q>")]
    else [2, short]
    end
  end
end
