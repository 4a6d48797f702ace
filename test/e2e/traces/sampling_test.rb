# frozen_string_literal: true

require_relative "../../support/traces_test_case"

# Which requests are traced, whose trace they belong to, and what the application gets to know.
class SamplingTest < TracesTestCase
  parallelize_me!

  FORMAT = /\A00-\h{32}-\h{16}-(\h\d)\n/

  def test_by_default_the_caller_decides
    collector = start_collector
    server = traced(collector)
    assert_equal "00", server.get("/unsampled", parent("00")).body[FORMAT, 1]
    assert_equal "01", server.get("/sampled", parent("01")).body[FORMAT, 1]
    assert_equal "01", server.get("/new").body[FORMAT, 1]
    collector.trace_of("/new")
    assert_equal TRACE, collector.trace_of("/sampled")["request"].trace
    assert_empty(collector.spans.select { |span| span["url.path"] == "/unsampled" })
  end

  def test_a_share_of_the_traces
    collector = start_collector
    variables = { "OTEL_TRACES_SAMPLER" => "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG" => "0.5" }
    server = traced(collector, env: variables)
    flags = server.connect { |client| Array.new(400) { client.get("/").body[FORMAT, 1] } }
    sampled = flags.count("01")
    assert_includes 140..260, sampled
    assert_equal 400, sampled + flags.count("00")
    wait_for("the spans") { collector.spans.count { |span| span["url.path"] == "/" } == sampled }
  end

  # The caller's decision does not count with these.
  def test_all_and_none_of_the_traces
    collector = start_collector
    { "0" => "00", "1" => "01" }.each do |share, flag|
      server = traced(collector, env: { "OTEL_TRACES_SAMPLER" => "traceidratio", "OTEL_TRACES_SAMPLER_ARG" => share })
      flags = server.connect { |client| Array.new(50) { client.get("/share#{share}").body[FORMAT, 1] } }
      flags += %w[00 01].map { |parents| server.get("/share#{share}", parent(parents)).body[FORMAT, 1] }
      assert_equal [flag], flags.uniq
    end
    wait_for("the spans") { collector.spans.count { |span| span["url.path"] == "/share1" } == 52 }
    assert_empty(collector.spans.select { |span| span["url.path"] == "/share0" })
  end

  def test_samplers_without_the_caller
    collector = start_collector
    server = traced(collector, env: { "OTEL_TRACES_SAMPLER" => "always_off" })
    assert_equal "00", server.get("/", parent("01")).body[FORMAT, 1]
    other = traced(collector, env: { "OTEL_TRACES_SAMPLER" => "always_on" })
    assert_equal "01", other.get("/", parent("00")).body[FORMAT, 1]
    assert_equal [TRACE], collector.wait_for("a span") { |span| span["url.path"] == "/" }.map(&:trace)
  end

  # Each begins a new trace, and its tracestate goes.
  def test_malformed_parents
    collector = start_collector
    server = traced(collector)
    valid = parent["traceparent"]
    hostile = [
      "#{valid}-more", "ff#{valid[2..]}", valid.upcase, valid.sub(TRACE, "0" * 32), valid.sub(CALLER, "0" * 16),
      valid[0..-2], "00-#{'g' * 32}-#{CALLER}-01", "x" * 8000, "", "#{valid}, #{valid}",
      "#{valid}\r\ntraceparent: #{valid}"
    ]
    hostile.each_with_index do |text, number|
      fields = { "traceparent" => text, "tracestate" => "a=1" }
      handed_on, state = server.get("/hostile#{number}", fields).body.split("\n")
      refute_includes handed_on, TRACE, text
      assert_match(/\A00-(?!0{32})\h{32}-(?!0{16})\h{16}-01\z/, handed_on, text)
      assert_equal "none", state, text
      assert_nil collector.trace_of("/hostile#{number}")["request"].parent
    end
  end

  def test_a_long_tracestate_passes_and_is_not_exported
    collector = start_collector
    server = traced(collector)
    long = server.get("/long", parent.merge("tracestate" => "a=#{'x' * 4000}")).body
    assert_includes long, "x" * 4000
    assert_nil collector.trace_of("/long")["request"].state
  end

  # Other clients could decide which requests are sampled.
  def test_only_trusted_proxies_are_callers
    collector = start_collector
    server = traced(collector, "--trusted-proxies", "192.0.2.0/24")
    handed_on, state = server.get("/stranger", parent("00").merge("tracestate" => "a=1")).body.split("\n")
    refute_includes handed_on, TRACE
    assert_equal %w[01 none], [handed_on[-2..], state]
    trusting = traced(collector, "--trusted-proxies", "127.0.0.1")
    assert_includes trusting.get("/proxied", parent).body, TRACE
  end

  def test_logs_name_the_trace
    collector = start_collector
    server = traced(collector, "--access-log", "-", "--request-id", "on")
    server.get("/logged", parent("00"))
    server.get("/die", parent("00"))
    wait_for("a line") { server.log.match?(%r{"GET /logged .* trace=#{TRACE} \h{8}-}) }
    wait_for("a line about the failure") { server.log.match?(%r{"?GET /die"?.* trace="?#{TRACE}}) }
    json = traced(collector, "--access-log", "-", "--access-log-format", "{status} {trace_id} {target}")
    json.get("/json", parent)
    wait_for("a line") { json.log.include?("200 #{TRACE} /json") }
  end

  # Nothing is made up, and nothing opened.
  def test_without_a_collector_the_parent_passes
    server = serve(app, ready: "/ready", env: { "OTEL_SERVICE_NAME" => "a", "OTEL_TRACES_SAMPLER" => "always_on" })
    assert_equal "none\nnone", server.get("/").body
    assert_equal "#{parent['traceparent']}\na=1", server.get("/", parent.merge("tracestate" => "a=1")).body
    assert_nil server.full_status["traces"]
    refute(Dir.glob("/proc/#{server.pid}/task/*/comm").any? { |file| File.read(file) == "traces\n" })
  end

  def test_variables_name_the_collector
    collector = start_collector
    [{ "OTEL_EXPORTER_OTLP_ENDPOINT" => collector.endpoint },
     { "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" => "#{collector.endpoint}/mine/x" }].each_with_index do |variables, number|
      headers = { "OTEL_EXPORTER_OTLP_HEADERS" => "api-key=a%20b", "OTEL_EXPORTER_OTLP_COMPRESSION" => "gzip" }
      serve(app, ready: "/ready", env: variables.merge(headers)).get("/#{number}")
      collector.trace_of("/#{number}")
    end
    request = collector.requests.first
    fields = %w[api-key content-type content-encoding]
    assert_equal ["a b", "application/x-protobuf", "gzip"], request.headers.values_at(*fields)
    assert_equal "POST /v1/traces HTTP/1.1", request.line
    assert_equal "POST /mine/x HTTP/1.1", collector.requests.last.line
  end

  def test_variables_turn_traces_off
    { "OTEL_SDK_DISABLED" => "true", "OTEL_TRACES_EXPORTER" => "none",
      "OTEL_EXPORTER_OTLP_PROTOCOL" => "grpc" }.each do |name, value|
      variables = { "OTEL_EXPORTER_OTLP_ENDPOINT" => "http://127.0.0.1:1", name => value }
      assert_nil serve(app, ready: "/ready", env: variables).full_status["traces"], name
    end
  end

  def test_values_that_are_wrong
    output, ended = HighballServer.run("serve", "-p", "0", "--otlp-endpoint", "localhost:4317", app)
    refute_predicate ended, :success?
    assert_match(/is not the URL of a collector/, output)
    missing = HighballServer.run("serve", "-p", "0", "--otlp-endpoint", "https://127.0.0.1:1", app,
                                 env: { "OTEL_EXPORTER_OTLP_CERTIFICATE" => "/nonexistent" })
    refute_predicate missing.last, :success?
    assert_match(%r{otlp_endpoint.*/nonexistent}, missing.first)
    server = serve(app, ready: "/ready", env: { "OTEL_EXPORTER_OTLP_ENDPOINT" => "localhost:4317" })
    assert_match(/OTEL_EXPORTER_OTLP_ENDPOINT: .* is not the URL/, server.log)
  end
end
