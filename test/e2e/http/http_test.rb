# frozen_string_literal: true

require "time"
require_relative "../../support/e2e_test"

# HTTP/1.1 as clients see it (RFC 9110, RFC 9112), and HTTP/1.0.
class HttpTest < E2ETest
  def setup
    super
    @server = serve("probe")
  end

  def test_a_connection_is_kept_for_further_requests
    @server.connect do |connection|
      100.times do |number|
        answer = connection.get("/echo?#{number}")
        assert_equal number.to_s, JSON.parse(answer.body)["env"]["QUERY_STRING"]
        assert_nil answer["connection"]
      end
      answer = connection.get("/", { "Connection" => "close" })
      assert_equal "close", answer["connection"]
      assert_predicate connection, :ended?
    end
  end

  def test_an_answer_has_a_date_and_a_length
    answer = @server.get("/array")
    assert_in_delta Time.now.to_i, Time.httpdate(answer["date"]).to_i, 2
    assert_equal "13", answer["content-length"]
    assert_nil answer["transfer-encoding"]
  end

  def test_pipelined_requests_are_answered_in_order
    server = serve("probe", workers: 2)
    requests = Array.new(50) do |number|
      "GET /sleep?ms=#{number.even? ? 20 : 0}&n=#{number} HTTP/1.1\r\nHost: test\r\n\r\n" \
        "POST /echo?#{number} HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n#{number.to_s.rjust(2)}"
    end
    server.connect do |connection|
      connection.write(requests.join)
      50.times do |number|
        assert_equal "slept\n", connection.read_response.body
        seen = JSON.parse(connection.read_response.body)
        assert_equal [number.to_s, number.to_s.rjust(2)], [seen["env"]["QUERY_STRING"], seen["body"]]
      end
    end
  end

  def test_a_request_may_come_a_byte_at_a_time
    @server.connect do |connection|
      bytes = "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      bytes.each_char { |byte| connection.write(byte) }
      assert_equal "abc", JSON.parse(connection.read_response.body)["body"]
    end
  end

  def test_http_1_0_closes_the_connection_unless_asked_to_keep_it
    @server.connect do |connection|
      answer = connection.get("/", version: "1.0")
      assert_equal 200, answer.status
      assert_predicate connection, :ended?
    end
    @server.connect do |connection|
      2.times do
        answer = connection.get("/download?bytes=9&length=1", { "Connection" => "keep-alive" }, version: "1.0")
        assert_equal 9, answer.body.bytesize
        assert_equal "keep-alive", answer["connection"]
      end
    end
  end

  def test_http_1_0_never_gets_chunks
    @server.connect do |connection|
      answer = connection.get("/download?bytes=200000", { "Connection" => "keep-alive" }, version: "1.0")
      assert_nil answer["transfer-encoding"]
      assert_equal 200_000, answer.body.bytesize
      assert_predicate connection, :ended?
    end
  end

  def test_head_has_the_head_of_get_and_no_body
    get = @server.get("/")
    @server.connect do |connection|
      2.times do
        head = connection.request("HEAD", "/")
        assert_equal [200, ""], [head.status, head.body]
        # It may be left out; if it is there it is that of GET (RFC 9110 section 8.6).
        assert_includes [nil, get["content-length"]], head["content-length"]
      end
      connection.request("HEAD", "/download?bytes=100000")
      connection.request("HEAD", "/raise")
      assert_equal "probe\n", connection.get("/").body
    end
  end

  # RFC 9110, section 9.3.2, whatever is wrong with the request.
  def test_head_is_refused_without_a_body
    ["HEAD / HTTP/1.1\r\nHost: a b\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n",
     "HEAD / HTTP/1.1\r\nHost: a\r\nX: #{'x' * 200_000}\r\n\r\n", "\r\nHEAD / HTTP/3.0\r\nHost: a\r\n\r\n",
     "HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"].each do |request|
      answer = @server.connect { |connection| connection.write(request).read_to_end }
      head, body = answer.split("\r\n\r\n", 2)
      assert_match(%r{\AHTTP/1.1 (?:400|417|431|505|501) }, head)
      assert_equal "", body, head
    end
  end

  def test_answers_that_never_have_a_body
    @server.connect do |connection|
      [204, 304].each do |code|
        answer = connection.get("/status?code=#{code}")
        assert_equal [code, ""], [answer.status, answer.body]
        assert_nil answer["transfer-encoding"]
        assert_nil answer["content-length"] if code == 204
      end
      assert_equal "404\n", connection.get("/status?code=404").body
    end
  end

  def test_a_body_in_chunks_and_one_with_a_length_are_the_same_to_the_app
    body = Random.new(3).bytes(700_000)
    chunks = body.scan(/.{1,70000}/mn).map { |chunk| "#{chunk.bytesize.to_s(16)}\r\n#{chunk}\r\n" }.join
    head = "POST /upload HTTP/1.1\r\nHost: test\r\n"
    @server.connect do |connection|
      connection.write("#{head}Transfer-Encoding: chunked\r\n\r\n#{chunks}0\r\nX-Sum: 1\r\n\r\n")
      chunked = connection.read_response.body
      plain = connection.request("POST", "/upload", {}, body).body
      assert_equal Digest::SHA256.hexdigest(body), JSON.parse(plain)["sha256"]
      assert_equal plain, chunked
    end
  end

  def test_expect_100_continue
    @server.connect do |connection|
      connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
      assert_equal 100, connection.read_response.status
      answer = connection.write("hello").read_response
      assert_equal [200, "hello"], [answer.status, JSON.parse(answer.body)["body"]]
    end
  end

  def test_no_100_for_a_body_that_is_there_or_refused_or_from_http_1_0
    request = "Host: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
    answers = @server.exchange("POST /echo HTTP/1.1\r\n#{request}hello")
    assert_equal 200, answers.last.status
    answers = @server.exchange("POST /echo HTTP/1.0\r\n#{request}hello")
    assert_equal [200], answers.map(&:status)
    small = serve("probe", "--max-body", "4")
    assert_equal [413], small.exchange("POST /echo HTTP/1.1\r\n#{request}").map(&:status)
  end

  def test_the_absolute_form_names_the_host
    @server.connect do |connection|
      seen = JSON.parse(connection.get("http://elsewhere:81/echo?a=1").body)["env"]
      assert_equal ["/echo", "a=1", "elsewhere:81"], seen.values_at("PATH_INFO", "QUERY_STRING", "HTTP_HOST")
      assert_equal %w[elsewhere 81], seen.values_at("SERVER_NAME", "SERVER_PORT")
    end
  end

  def test_the_asterisk_form_is_for_options
    assert_equal 200, @server.request("OPTIONS", "*").status
    assert_equal 400, @server.request("GET", "*").status
  end

  def test_two_hundred_clients_share_one_worker
    server = serve("probe", workers: 1, threads: 3)
    answers = concurrently(20) do |client|
      Array.new(10) { server.connect }.each_with_index.map do |connection, index|
        name = "#{client}-#{index}"
        [name, JSON.parse(connection.get("/echo?#{name}").body)["env"]["QUERY_STRING"], connection.close]
      end
    end
    answers.flatten(1).each { |asked, answered| assert_equal asked, answered }
  end

  def test_a_client_that_leaves_does_not_matter
    20.times do
      @server.connect { |connection| connection.send_request("GET", "/download?bytes=10000000") }
    end
    assert_equal "probe\n", @server.get("/").body
    # Some left before Ruby took their request, and never reached it.
    wait_for("close of every body") do
      count = JSON.parse(@server.get("/count?targets=1").body)
      count["closed"] == count["targets"].count("GET /download")
    end
  end
end
