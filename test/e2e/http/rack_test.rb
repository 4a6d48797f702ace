# frozen_string_literal: true

# marks: debian13

require_relative "../../support/e2e_test"

# The envs that applications get, and the responses that they may return (Rack SPEC), with the installed Rack.
class RackTest < E2ETest
  # The errors of a connection that ends in the middle of an answer.
  CUT_OFF = [EOFError, Errno::ECONNRESET].freeze

  def setup
    super
    @file = File.join(folder_with("file.bin" => Random.new(5).bytes(2 * MIB)), "file.bin")
    @server = serve("probe", env: { "PROBE_FILE" => @file })
  end

  # --- env

  def test_the_environment_of_a_request
    headers = { "X-Request-Id" => "42", "Content-Type" => "text/x", "Host" => "shop:8080" }
    seen = echo("POST", "/echo?a=1&b=%20", headers, "hi")
    expected = { "REQUEST_METHOD" => "POST", "SCRIPT_NAME" => "", "PATH_INFO" => "/echo", "QUERY_STRING" => "a=1&b=%20",
                 "SERVER_NAME" => "shop", "SERVER_PORT" => "8080", "SERVER_PROTOCOL" => "HTTP/1.1",
                 "HTTP_HOST" => "shop:8080", "HTTP_X_REQUEST_ID" => "42", "CONTENT_TYPE" => "text/x",
                 "CONTENT_LENGTH" => "2", "REMOTE_ADDR" => "127.0.0.1" }
    assert_equal expected, seen["env"].slice(*expected.keys)
    %w[HTTP_CONTENT_TYPE HTTP_CONTENT_LENGTH].each { |name| refute_includes seen["env"], name }
    %w[rack.errors rack.input rack.url_scheme rack.hijack?].each { |name| assert_includes seen["rack"], name }
  end

  def test_a_request_without_a_body_has_no_length
    seen = echo("GET", "/echo")["env"]
    refute_includes seen, "CONTENT_LENGTH"
    assert_equal "", seen["QUERY_STRING"]
  end

  def test_names_with_underscores_cannot_pass_for_others
    headers = { "X_Forwarded_For" => "6.6.6.6", "X-Real-Ip" => "1.2.3.4", "Proxy" => "evil:80" }
    seen = echo("GET", "/echo", headers)["env"]
    refute_includes seen, "HTTP_X_FORWARDED_FOR"
    refute_includes seen, "HTTP_PROXY"
    assert_equal "1.2.3.4", seen["HTTP_X_REAL_IP"]
  end

  def test_repeated_fields_are_joined
    fields = "X-A: 1\r\nCookie: a=1\r\nx-a: 2\r\nCookie: b=2\r\nConnection: close\r\n"
    seen = JSON.parse(@server.exchange("GET /echo HTTP/1.1\r\nHost: test\r\n#{fields}\r\n").first.body)["env"]
    assert_equal ["1, 2", "a=1; b=2"], seen.values_at("HTTP_X_A", "HTTP_COOKIE")
  end

  def test_paths_stay_as_they_were_sent
    assert_equal 404, @server.get("/a%2Fb//c").status
    assert_includes @server.get("/a%2Fb//c").body, "/a%2Fb//c"
  end

  def test_the_input_reads_like_a_file
    lines = JSON.parse(@server.request("POST", "/input", {}, "one\ntwo three").body)
    assert_equal ["one\n", "two", " three"], lines["lines"]
    assert_equal "one\ntwo three", lines["again"] if Rack::RELEASE < "3"
    large = Random.new(6).bytes(3 * MIB)
    answer = JSON.parse(@server.request("POST", "/upload", {}, large).body)
    assert_equal [large.bytesize, Digest::SHA256.hexdigest(large)], answer.values_at("bytes", "sha256")
  end

  # --- answers

  def test_headers_with_several_values_and_odd_ones
    answer = @server.get("/many-headers")
    assert_equal %w[a=1 b=2], answer.values("set-cookie")
    assert_equal [""], answer.values("x-empty")
    assert_equal ["caf\xE9".b], answer.values("x-latin").map(&:b)
  end

  def test_bodies_by_each_to_ary_and_to_path
    assert_equal 1_000_000, @server.get("/download?bytes=1000000").body.bytesize
    assert_equal "chunked", @server.get("/download?bytes=1000000")["transfer-encoding"]
    assert_equal "1000000", @server.get("/download?bytes=1000000&length=1")["content-length"]
    assert_equal "one two three", @server.get("/array").body
    assert_equal "13", @server.get("/array")["content-length"]
    assert_equal "one two three", @server.get("/array-of-none").body
    assert_equal Digest::SHA256.file(@file).hexdigest, Digest::SHA256.hexdigest(@server.get("/file").body)
    assert_equal 7, count["closed"]
  end

  def test_bodies_that_stream_arrive_as_they_are_written
    @server.connect do |connection|
      connection.send_request("GET", "/download?bytes=30&piece=10&pause_ms=300")
      times = []
      connection.read_response { times << Deadline.now }
      assert_operator times.last - times.first, :>, 0.3
    end
  end

  def test_a_streaming_body_is_given_the_stream
    skip "streaming bodies came with Rack 3" if Rack::RELEASE < "3"
    assert_equal "part 0\npart 1\npart 2\n", @server.get("/stream").body
    assert_equal 1, count["closed"]
  end

  def test_early_hints
    skip "the server offers none" unless echo("GET", "/echo")["rack"].include?("rack.early_hints")
    @server.connect do |connection|
      early = connection.get("/early")
      assert_equal [103, "</style.css>; rel=preload"], [early.status, early["link"]]
      assert_equal "late\n", connection.read_response.body
    end
  end

  def test_response_finished
    skip "the server does not offer it" unless echo("GET", "/echo")["rack"].include?("rack.response_finished")
    @server.get("/finish")
    wait_for("the callback") { count["finished"] == [[200, nil]] }
  end

  # --- close

  def test_close_is_called_whatever_happens
    @server.get("/download?bytes=100")
    @server.request("HEAD", "/download?bytes=100000")
    @server.get("/file")
    assert_raises(*CUT_OFF) { @server.get("/raise-late") }
    @server.connect { |connection| connection.send_request("GET", "/download?bytes=100000000") }
    wait_for("close of five bodies") { count["closed"] == 5 }
  end

  # --- errors

  def test_an_exception_becomes_a_500_and_a_log_entry_with_its_backtrace
    @server.connect do |connection|
      assert_equal 500, connection.get("/raise").status
      assert_equal "probe\n", connection.get("/").body
    end
    wait_for("the log entry") { @server.log.include?("raised on purpose") }
    assert_match(/ArgumentError/, @server.log)
    assert_match(%r{probe/probe\.rb:\d+}, @server.log)
  end

  def test_no_error_of_the_app_ends_a_worker
    pid = @server.get("/pid").body
    %w[/raise /throw /exit /deep].each { |path| assert_equal 500, @server.get(path).status, path }
    assert_includes [500, 502], @server.get("/kill-thread").status
    assert_equal pid, @server.get("/pid").body
    assert_equal %w[200 200 200], Array.new(3) { @server.get("/sleep?ms=1").status.to_s }
  end

  def test_an_answer_that_breaks_off_is_seen_to_be_incomplete
    ["/raise-late", "/raise-late?length=1"].each do |target|
      assert_raises(*CUT_OFF) { @server.get(target) }
    end
    assert_equal 200, @server.get("/").status
  end

  # The length that the application declares counts: a longer body is cut at it, and a shorter one is seen to
  # be cut off. So it is whatever the shape of the body, and however fast the worker is.
  def test_a_wrong_length_counts
    %w[array each pause].each do |shape|
      @server.connect do |connection|
        assert_equal "twe", connection.get("/wrong-length?length=3&shape=#{shape}").body
        assert_equal "probe\n", connection.get("/").body, "the connection goes on"
      end
      wait_for("the log's entry") { @server.log.include?("is cut where its Content-Length or its chunks end") }
      assert_raises(*CUT_OFF) { @server.get("/wrong-length?length=100&shape=#{shape}") }
    end
    assert_equal 200, @server.get("/").status
  end

  def test_answers_that_are_none
    %w[/wrong-status /wrong-triplet /wrong-body /wrong-header].each do |path|
      answer = @server.get(path)
      assert_includes [500, 502], answer.status, path
      assert_empty answer.values("set-cookie")
    end
    assert_equal 200, @server.get("/").status
  end

  private

  def echo(method, target, headers = {}, body = nil)
    JSON.parse(@server.request(method, target, headers, body).body)
  end

  def count
    JSON.parse(@server.get("/count").body)
  end
end
