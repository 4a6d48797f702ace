# frozen_string_literal: true

require "open3"
require "time"
require_relative "../../support/http2_test_case"

# HTTP/2 without TLS, as clients see it (RFC 9113).
class Http2Test < Http2TestCase
  # What curl prints at the end.
  WRITTEN = "%{http_version} %{http_code}" # rubocop:disable Style/FormatStringToken -- curl's
  LARGE = Random.new(1).bytes((3 * MIB) + 17)

  def setup
    super
    @server = serve_http2("probe", "--max-body", "8m", "--access-log", "-", env: { "PROBE_FILE" => __FILE__ })
  end

  def test_an_application_sees_an_ordinary_request
    http2 do |client|
      answer = client.ask(1, "POST", "/echo?a=b", { "cookie" => "a=1", "x-one" => "1" }, "body")
      seen = JSON.parse(answer.body)
      assert_equal [[200], "body"], [answer.statuses, seen["body"]]
      names = %w[REQUEST_METHOD QUERY_STRING SERVER_PROTOCOL HTTP_HOST HTTP_X_ONE HTTP_COOKIE]
      assert_equal ["POST", "a=b", "HTTP/2", "test", "1", "a=1"], seen["env"].values_at(*names)
    end
    wait_for("the access log") { @server.log.include?('"POST /echo?a=b HTTP/2.0" 200') }
  end

  def test_curl_speaks_it
    output, status = Open3.capture2("curl", "-sS", "--http2-prior-knowledge", "-w", WRITTEN,
                                    "-H", "Expect: 100-continue", "--data-binary", "@-",
                                    "http://127.0.0.1:#{@server.port}/upload", stdin_data: LARGE, binmode: true)
    assert_predicate status, :success?
    assert_includes output, Digest::SHA256.hexdigest(LARGE)
    assert output.end_with?("2 200"), output
  end

  def test_http_1_is_spoken_at_the_same_address
    assert_equal "probe\n", @server.get("/").body
    @server.connect do |connection|
      "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi".each_char { |byte| connection.write(byte) }
      assert_equal "hi", JSON.parse(connection.read_response.body)["body"]
    end
  end

  def test_it_is_off_unless_it_is_switched_on
    answer = serve("probe").exchange(Http2Client::PREFACE).first
    assert_equal 505, answer.status
  end

  def test_requests_of_a_connection_do_not_wait_for_each_other
    http2 do |client|
      client.send_request(1, "GET", "/held")
      streams = Array.new(90) { |number| 3 + (2 * number) }
      streams.each { |stream| client.send_request(stream, "GET", "/echo?#{stream}") }
      seen = streams.map { |stream| JSON.parse(client.answer(stream).body).dig("env", "QUERY_STRING") }
      assert_equal streams.map(&:to_s), seen
      refute_predicate client.part(1), :over?
      assert_equal [200, 200], [client.ask(301, "GET", "/release").status, client.answer(1).status]
    end
  end

  def test_static_files
    server = serve_http2(probe_with("public/large.bin" => LARGE, "public/a.txt" => "hello\n"))
    http2(server) do |client|
      client.send_request(1, "GET", "/large.bin")
      client.send_request(3, "GET", "/large.bin", { "range" => "bytes=5-9" })
      client.send_request(5, "HEAD", "/large.bin")
      client.send_request(7, "GET", "/a.txt", { "if-modified-since" => (Time.now + 60).httpdate })
      client.send_request(9, "POST", "/a.txt", {}, "x")
      assert_equal Digest::SHA256.hexdigest(LARGE), Digest::SHA256.hexdigest(client.answer(1).body)
      answers = [3, 5, 7].map { |stream| client.answer(stream) }
      assert_equal [[206, LARGE[5..9]], [200, ""], [304, ""]], (answers.map { |answer| [answer.status, answer.body] })
      refute_equal "hello\n", client.answer(9).body
    end
  end

  def test_bodies_of_any_length
    http2 do |client|
      client.send_request(1, "POST", "/upload", { "content-length" => "0" }, "")
      client.send_request(3, "POST", "/upload", { "content-length" => "3" }, "abc")
      client.send_request(5, "POST", "/upload", {}, "abcd", is_complete: false)
      client.write_frame(Http2Client::HEADERS, 5, 5, client.field_bytes("x-trailer", "1")) # the trailers are dropped
      lengths = [1, 3, 5].map { |stream| JSON.parse(client.answer(stream).body)["bytes"] }
      assert_equal [0, 3, 4], lengths
    end
  end

  # A client may send no more of a body than was read, and a refused one not at all.
  def test_a_body_beyond_the_limit_costs_its_stream_alone
    http2 do |client|
      answer = client.ask(1, "POST", "/upload", { "content-length" => (9 * MIB).to_s }, is_complete: false)
      assert_equal [413, true], [answer.status, answer.is_complete]
      client.send_request(3, "POST", "/upload", {}, is_complete: false)
      client.send_body(3, "x" * (9 * MIB))
      assert_equal 413, client.answer(3).status
      assert_equal 200, client.ask(5, "GET", "/").status
    end
  end

  def test_interim_heads
    server = serve_http2("probe", "--early-hints", "on")
    http2(server) do |client|
      answer = client.ask(1, "GET", "/early")
      assert_equal [[103, 200], "late\n"], [answer.statuses, answer.body]
      fields = { "expect" => "100-continue", "content-length" => "2" }
      client.send_request(3, "POST", "/echo", fields, is_complete: false)
      client.read_until { client.part(3).statuses == [100] }
      client.write_frame(Http2Client::DATA, Http2Client::END_STREAM, 3, "hi")
      assert_equal [100, 200], client.answer(3).statuses
    end
  end

  def test_errors_cost_their_stream_alone
    http2 do |client|
      client.send_request(1, "GET", "/raise")
      client.send_request(3, "GET", "/raise-late?bytes=10")
      client.send_request(5, "GET", "/")
      assert_equal 500, client.answer(1).status
      late = client.answer(3)
      assert_equal [200, false], [late.status, late.is_complete]
      assert_equal 2, late.reset, "INTERNAL_ERROR"
      assert_equal 200, client.answer(5).status
    end
  end

  # RFC 9113, sections 8.2 and 8.3.
  def test_requests_that_are_not_right
    malformed = [{ "connection" => "close" }, { "transfer-encoding" => "chunked" }, { "upgrade" => "h2c" },
                 { "te" => "gzip" }, { ":path" => "/again" }, { "content-length" => "5" }]
    refused = { { "host" => "other" } => 400, { "expect" => "tea" } => 417, { "x-space" => " 1" } => 400 }
    http2 do |client|
      stream = -1
      malformed.each do |fields|
        client.send_request(stream += 2, "GET", "/", fields)
        assert_equal [[], Http2Client::PROTOCOL_ERROR], client.answer(stream).to_a.values_at(0, 2), fields.inspect
      end
      refused.each do |fields, status|
        client.send_request(stream += 2, "GET", "/", fields)
        assert_equal status, client.answer(stream).status, fields.inspect
      end
      client.send_request(stream += 2, "GET", "/", { "te" => "trailers" }, authority: nil)
      assert_equal 400, client.answer(stream).status, "without a host"
      client.send_request(stream += 2, "GET", "/", { "te" => "trailers", "host" => "test" })
      assert_equal 200, client.answer(stream).status
    end
    assert_empty(targets(@server).grep(/again/))
  end

  # RFC 9113, section 8.3.1, and what an absolute target of HTTP/1 may have.
  def test_pseudo_header_fields
    right = { ":method" => "GET", ":scheme" => "http", ":path" => "/", ":authority" => "test" }
    resets = [{ ":scheme" => nil }, { ":scheme" => "h ttp" }, { ":path" => "" }, { ":path" => "again" },
              { ":path" => "/a\0again" }, { ":authority" => "" }, { ":method" => nil }, { ":status" => "200" }]
    refused = { { ":scheme" => "" } => 400, { ":scheme" => "ftp" } => 400, { ":scheme" => "1http" } => 400,
                { ":path" => "*" } => 400, { ":path" => "?again" } => 400, { ":authority" => "user@test" } => 400,
                { ":authority" => nil } => 400, { ":method" => "A" * 33 } => 501, { ":method" => "A" * 10_000 } => 501,
                { ":scheme" => "HTTPS" } => 200, { ":method" => "A" * 32 } => 200 }
    http2 do |client|
      stream = -1
      ask = lambda do |changes|
        block = right.merge(changes).compact.map { |name, value| client.field_bytes(name, value) }.join
        client.write_frame(Http2Client::HEADERS, Http2Client::END_STREAM | Http2Client::END_HEADERS, stream += 2, block)
        client.answer(stream)
      end
      resets.each { |changes| assert_equal Http2Client::PROTOCOL_ERROR, ask.call(changes).reset, changes.inspect }
      refused.each { |changes, status| assert_equal status, ask.call(changes).status, changes.inspect[0, 60] }
    end
    assert_empty(targets(@server).grep(/again/))
  end

  def test_names_in_upper_case
    http2 do |client|
      client.send_request(1, "GET", "/", { "X-Upper" => "1" })
      assert_equal Http2Client::PROTOCOL_ERROR, client.read_to_end
    end
  end

  def test_a_proxy_reports_the_client
    server = serve("probe", *CLEARTEXT, "--proxy-protocol", "v1", preface: "PROXY UNKNOWN\r\n")
    client = Http2Client.tcp(server.port).write("PROXY TCP4 192.0.2.7 127.0.0.1 4000 80\r\n")
    client.greet.use do
      assert_equal "192.0.2.7", JSON.parse(client.ask(1, "GET", "/echo").body).dig("env", "REMOTE_ADDR")
    end
  end
end
