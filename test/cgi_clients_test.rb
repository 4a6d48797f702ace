# frozen_string_literal: true

require "minitest/autorun"
require_relative "support/fastcgi_client"
require_relative "support/lsapi_client"

# The clients of FastCGI and LSAPI, compared with bytes that are written by hand from the specifications.
class CgiClientsTest < Minitest::Test
  def setup
    @server, @socket = UNIXSocket.pair
  end

  def teardown
    [@server, @socket].each(&:close)
  end

  def test_fastcgi_requests
    client = FastcgiClient.new(@socket)
    client.piece_bytes = 3
    client.begin_request(keep: true)
    client.write_params({ "A" => "b", "LONG" => "v" * 200 }, record_bytes: 100)
    client.write_body("hello")
    client.end_body
    client.abort(id: 258)
    long = "\x04\x80\0\0\xC8LONG#{'v' * 200}".b
    content = "\x01\x01Ab".b + long
    assert_sent "\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0".b,
                "\x01\x04\0\x01\0\x64\x04\0".b, content[0, 100], "\0" * 4,
                "\x01\x04\0\x01\0\x64\x04\0".b, content[100, 100], "\0" * 4,
                "\x01\x04\0\x01\0\x0D\x03\0".b, content[200, 13], "\0" * 3,
                "\x01\x04\0\x01\0\0\0\0", "\x01\x05\0\x01\0\x05\x03\0hello\0\0\0", "\x01\x05\0\x01\0\0\0\0",
                "\x01\x02\x01\x02\0\0\0\0"
  end

  def test_fastcgi_variables_are_those_of_web_servers
    params = FastcgiClient.new(@socket).params_of("POST", "/a%20b?c", { "X-Foo" => 1, "Content-Type" => "text/x" }, 5)
    assert_equal ["POST", "/a%20b?c", "c", "5", "text/x", "1", "test"],
                 params.values_at("REQUEST_METHOD", "REQUEST_URI", "QUERY_STRING", "CONTENT_LENGTH", "CONTENT_TYPE",
                                  "HTTP_X_FOO", "HTTP_HOST")
    refute params.keys.intersect?(%w[HTTP_CONTENT_LENGTH HTTP_CONTENT_TYPE])
  end

  def test_fastcgi_answers
    client = FastcgiClient.new(@socket)
    @server.write("\x01\x06\0\x01\0\x10\x01\0Status: 404 Nope!", "\x01\x06\0\x01\0\x08\0\0\r\nA: b\r\n",
                  "\x01\x06\0\x01\0\x04\0\0\r\nhi", "\x01\x06\0\x01\0\0\0\0",
                  "\x01\x03\0\x01\0\x08\0\0\0\0\0\x07\0\0\0\0", "\x01\x06\0\x01\0\x03\0\0A:b")
    answer = client.read_response
    assert_equal [404, "Nope", [%w[a b]], "hi"], [answer.status, answer.reason, answer.fields, answer.body]
    assert_equal [7, 0], [client.app_status, client.protocol_status]
    @server.close_write
    assert_raises(EOFError) { client.read_response }
    assert_nil client.read_response
    assert_predicate client, :ended?
  end

  def test_fastcgi_answers_that_are_malformed
    ["\0\x06\0\x01\0\0\0\0", "\x01\x06\0\x02\0\x01\0\0x", "\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x01\0\0\0",
     "\x01\x06\0\x01\0\x07\0\0bad\r\n\r\n"].each do |bytes|
      @server.write(bytes)
      assert_raises(CgiConnection::BadAnswer, bytes.inspect) { FastcgiClient.new(@socket).read_response }
      teardown
      setup
    end
  end

  def test_fastcgi_bodies_stream
    client = FastcgiClient.new(@socket)
    pieces = []
    reader = Thread.new { client.read_response { |piece| pieces << piece } }
    @server.write("\x01\x06\0\x01\0\x05\0\0\r\n\r\na")
    Deadline.wait("the first piece") { pieces == ["a"] }
    @server.write("\x01\x06\0\x01\0\x01\0\0b\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0")
    assert_equal "", reader.value.body
    assert_equal %w[a b], pieces
  end

  def test_lsapi_requests
    client = LsapiClient.new(@socket)
    client.send_request("POST", "/x?y", { "Host" => "a", "X-Foo" => "1" }, "hello", params: ONE_VARIABLE)
    head = "POST /x?y HTTP/1.1\r\nHost: a\r\nX-Foo: 1\r\nContent-Length: 5\r\n\r\n"
    lengths = [0] * 25
    offsets = [0] * 25
    lengths[10] = lengths[7] = 1
    offsets[10] = head.index("a\r\n")
    offsets[7] = head.index("5\r\n")
    # 44 bytes of numbers, 4 of special variables, 20 + 4 of variables: a multiple of 8.
    variable = "\0\x0F\0\x05REQUEST_METHOD\0POST\0"
    fixed = [head.bytesize, 5, 44, 44, 44, 44 + 4 + 4 + 15, 1, 1, 0].pack("l<9")
    rest = "#{fixed}\0\0\0\0#{variable}\0\0\0\0"
    rest << ("\0" * (-(rest.bytesize + 8) % 8)) << lengths.pack("s<25") << "\0\0" << offsets.pack("l<25")
    rest << [head.index("X-Foo"), 5, head.index("1\r\nC"), 1].pack("l<4") << head
    assert_sent "LS\x01\0", [rest.bytesize + 8].pack("l<"), rest, "hello"
  end

  def test_lsapi_requests_in_the_other_byte_order
    client = LsapiClient.new(@socket)
    client.order = :big
    client.begin_request("POST", "/", {}, 5_000_000_000, params: ONE_VARIABLE)
    packet = @server.readpartial(10_000)
    assert_equal ["LS\x01\x01".b, packet.bytesize, -2], packet.unpack("a4l>x4l>")
    client.abort
    assert_equal "LS\x02\x01\0\0\0\x08".b, @server.readpartial(100)
  end

  def test_lsapi_answers
    client = LsapiClient.new(@socket)
    @server.write("LS\x07\0\x08\0\0\0", "LS\x03\0\x1E\0\0\0\x02\0\0\0\x94\x01\0\0\x05\0\x05\0A: b\0c: d\0",
                  "LS\x06\0\x0B\0\0\0log", "LS\x04\x01\0\0\0\x0Ahi", "LS\x05\0\x08\0\0\0", "LS\x08\0\x08\0\0\0")
    answer = client.read_response
    assert_equal [404, [%w[a b], %w[c d]], "hi"], [answer.status, answer.fields, answer.body]
    assert client.received && client.closing
    assert_equal "log", client.errors
    @server.write("LS\x04\0")
    @server.close_write
    assert_raises(EOFError) { client.read_response }
  end

  private

  ONE_VARIABLE = %w[
    REQUEST_URI SCRIPT_NAME QUERY_STRING SERVER_PROTOCOL REQUEST_SCHEME GATEWAY_INTERFACE SERVER_SOFTWARE SERVER_NAME
    SERVER_ADDR SERVER_PORT REMOTE_ADDR REMOTE_PORT DOCUMENT_ROOT SCRIPT_FILENAME
  ].to_h { |name| [name, nil] }.freeze
  private_constant :ONE_VARIABLE

  def assert_sent(*parts)
    @socket.close_write
    assert_equal parts.map(&:b).join, @server.read
  end
end
