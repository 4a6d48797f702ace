# frozen_string_literal: true

require_relative "../../support/traces_test_case"
require_relative "../../support/http2_client"
require_relative "../../support/http2_test_case"

# The spans of requests of each kind, as a collector gets them.
class SpansTest < TracesTestCase
  parallelize_me!

  def test_a_request_has_spans_for_queue_worker_and_body
    collector = start_collector
    server = traced(collector, env: { "OTEL_SERVICE_NAME" => "blog", "OTEL_RESOURCE_ATTRIBUTES" => "team=a%20b" })
    server.get("/slow?a=b", { "User-Agent" => "a test", "Host" => "blog.test:8080" })
    spans = collector.trace_of("/slow")
    request = spans.fetch("request")
    assert_equal ["GET", "SERVER", nil, false], request.to_h.values_at(:name, :kind, :parent, :error?)
    assert_equal({ "service.name" => "blog", "team" => "a b" }, request.resource)
    assert_equal(
      { "http.request.method" => "GET", "url.path" => "/slow", "url.query" => "a=[withheld]", "url.scheme" => "http",
        "user_agent.original" => "a test", "server.address" => "blog.test", "server.port" => 8080,
        "network.protocol.version" => "1.1", "client.address" => "127.0.0.1", "http.response.status_code" => 200,
        "highball.app" => File.basename(app) }, request.attributes
    )
    assert_in_order(request, *spans.values_at("queue", "worker", "response body"))
  end

  # The application's own spans hang below the worker's.
  def test_the_application_gets_the_workers_span_as_its_parent
    collector = start_collector
    server = traced(collector)
    handed_on, state = server.get("/mine", parent.merge("tracestate" => "a=1,b=2")).body.split("\n")
    spans = collector.trace_of("/mine")
    assert_equal "00-#{TRACE}-#{spans['worker'].id}-01", handed_on
    assert_equal [TRACE, CALLER, "a=1,b=2"], spans["request"].to_h.values_at(:trace, :parent, :state)
    assert_equal "a=1,b=2", state
  end

  def test_requests_that_reach_no_worker_have_one_span
    collector = start_collector
    server = traced(collector, "--cache", "1m", "--max-body", "10")
    2.times { server.get("/cached") }
    server.get("/file.txt")
    server.request("POST", "/large", {}, "x" * 100)
    server.exchange("nonsense\r\n\r\n")
    hit = collector.wait_for("a hit") { |span| span["highball.cache"] == "hit" }.first
    assert_equal ["/cached", 200], hit.attributes.values_at("url.path", "http.response.status_code")
    file = collector.trace_of("/file.txt")
    assert_equal [["request"], 200], [file.keys, file["request"]["http.response.status_code"]]
    large = collector.trace_of("/large")
    assert_equal [["request"], 413], [large.keys, large["request"]["http.response.status_code"]]
    assert_nil large["request"]["error.type"]
    unread = collector.wait_for("an unreadable request") { |span| span.name == "HTTP" }.first
    assert_equal ["_OTHER", 400], unread.attributes.values_at("http.request.method", "http.response.status_code")
  end

  def test_failures
    collector = start_collector
    server = traced(collector, "--request-timeout", "1s", "--rate-limit", "/limited 1/h", "--trusted-proxies",
                    "loopback", workers: 2)
    assert_equal([500, 504, 502], %w[/raise /hang /die].map { |path| server.get(path).status })
    2.times { server.get("/limited", { "X-Forwarded-For" => "192.0.2.7" }) }
    { "/raise" => 500, "/die" => 502, "/hang" => 504 }.each do |path, status|
      spans = collector.trace_of(path)
      request = spans["request"]
      assert_equal [status, status.to_s], request.attributes.values_at("http.response.status_code", "error.type")
      assert_predicate request, :error?
      assert spans.fetch("worker").within?(request)
    end
    limited = collector.wait_for("a limited request") { |span| span["http.response.status_code"] == 429 }.first
    assert_equal "192.0.2.7", limited["client.address"]
    refute_predicate limited, :error?
  end

  def test_what_waits_in_vain_has_a_span_of_the_queue
    collector = start_collector
    server = traced(collector, "--max-queue", "1", threads: 1)
    clients = Array.new(6) { server.connect.tap { |client| client.send_request("GET", "/slow") } }
    statuses = clients.map { |client| client.read_response.status }
    assert_includes statuses, 503
    refused = collector.wait_for("a refused request") { |span| span["http.response.status_code"] == 503 }.first
    assert_predicate refused, :error?
    refute(collector.spans.any? { |span| span.parent == refused.id && span.name == "worker" })
  ensure
    clients&.each(&:close)
  end

  def test_clients_that_leave
    collector = start_collector
    server = traced(collector)
    server.connect { |client| client.send_request("GET", "/slow?gone") }
    request = collector.trace_of("/slow")["request"]
    assert_equal ["client_left", nil], request.attributes.values_at("error.type", "http.response.status_code")
    refute_predicate request, :error?
  end

  def test_long_answers
    collector = start_collector
    server = traced(collector)
    assert_equal "0\n1\n2\n", server.get("/stream").body
    stream = collector.trace_of("/stream")
    assert_operator stream["response body"].end - stream["response body"].begin, :>=, 200_000_000
    assert(stream.values.all? { |span| span.within?(stream["request"]) })
    server.connect { |client| client.write("GET /hijack HTTP/1.1\r\nHost: a\r\n\r\n").read_response }
    assert_includes collector.trace_of("/hijack").keys, "worker"
    server.connect do |client|
      client.send_request("GET", "/held", { "Accept" => "text/event-stream" })
      client.read_bytes(12)
    end
    assert_equal 200, collector.trace_of("/held")["request"]["http.response.status_code"]
    read_cut_off(server, "/cut")
    cut = collector.trace_of("/cut")["request"]
    assert_equal ["cut_off", true], [cut["error.type"], cut.error?]
  end

  def test_http2
    collector = start_collector
    server = traced(collector, *Http2TestCase::CLEARTEXT)
    Http2Client.tcp(server.port).use do |client|
      client.greet
      client.send_request(1, "GET", "/two", parent)
      assert_equal 200, client.answer(1).status
    end
    request = collector.trace_of("/two")["request"]
    assert_equal ["2", CALLER], [request["network.protocol.version"], request.parent]
  end

  def test_methods_and_texts_of_clients
    collector = start_collector
    server = traced(collector)
    server.request("BREW", "/p" * 1500, { "User-Agent" => "a\xff".b })
    request = collector.wait_for("the request") { |span| span.name == "HTTP" }.first
    assert_equal %w[_OTHER BREW], request.attributes.values_at("http.request.method", "http.request.method_original")
    assert_equal 1024, request["url.path"].length
    assert_equal "a\ufffd", request["user_agent.original"]
  end

  # In development, the link with the developer's key.
  def test_no_key_of_a_developer_is_exported
    collector = start_collector
    server = traced(collector, environment: "development")
    key = server.link_key
    server.stranger.use { |client| client.get("/linked?highball=#{key}") }
    server.stranger.use { |client| client.get("/other?x=#{key}", { "User-Agent" => "a #{key}" }) }
    collector.trace_of("/linked")
    assert_equal "a [masked]", collector.trace_of("/other")["request"]["user_agent.original"]
    collector.requests.each { |request| refute_includes request.body, key }
  end

  private

  # The server may reset the connection, so that nothing takes a part of an answer for the whole.
  def read_cut_off(server, path)
    server.connect { |client| client.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n").read_to_end }
  rescue Errno::ECONNRESET
    nil
  end

  # One after the other, within the request; the application has taken 200 ms.
  def assert_in_order(request, queue, worker, body)
    [queue, worker, body].each do |span|
      assert_equal [request.trace, "INTERNAL"], [span.trace, span.kind]
      assert span.within?(request), "#{span} is not within #{request}"
    end
    assert_operator worker.end - worker.begin, :>=, 200_000_000
    assert_operator queue.end, :<=, worker.begin
    assert_operator body.begin, :>=, worker.begin + 200_000_000
    assert_in_delta Process.clock_gettime(Process::CLOCK_REALTIME), request.end / 1e9, 30
    assert_equal 1, worker["highball.worker"]
  end
end
