# frozen_string_literal: true

# marks: few, long (it waits for time limits)

require_relative "../../support/traces_test_case"
require_relative "../../support/admin"
require_relative "../../support/tls_files"

# Collectors that are away, slow, refusing or hostile: requests do not notice, and what is lost is counted.
class CollectorsTest < TracesTestCase
  include Admin

  # More spans than fit into the queue.
  MANY = 9000

  def test_a_collector_that_is_away
    gone = start_collector
    gone.close
    server = traced(gone, *admin)
    before = ProcessFacts.private_dirty_bytes([server.server_pid])
    ask_many(server, MANY)
    assert_operator traces_of(server)["dropped"], :>, 1000
    assert_operator ProcessFacts.private_dirty_bytes([server.server_pid]) - before, :<, 24 * MIB
    assert_match(/Connect/i, traces_of(server)["problem"])
    assert_equal 1, server.log.scan("the collector does not take traces").length
    dropped = ask_admin("/metrics").body[/^highball_trace_spans_total{outcome="dropped"} (\d+)/, 1]
    assert_equal traces_of(server)["dropped"], dropped.to_i
    assert_recovers(server, gone)
  end

  # It accepts, and never answers.
  def test_a_slow_collector
    slow = start_collector(answer: nil)
    server = traced(slow, env: { "OTEL_EXPORTER_OTLP_TIMEOUT" => "500" })
    ask_many(server, MANY)
    wait_for("the problem") { traces_of(server)["problem"]&.include?("no answer within 0.5 s") }
    assert_operator traces_of(server)["dropped"], :>, 1000
    began = Deadline.now
    assert_predicate server.stop, :success?
    assert_operator Deadline.now - began, :<, 10
  end

  def test_a_collector_that_refuses_for_a_while
    busy = start_collector(answer: TraceCollector.status(503, "retry-after: 1"))
    server = traced(busy)
    ask_many(server, 200)
    wait_for("two attempts") { busy.requests.length >= 2 }
    assert_equal 0, traces_of(server)["dropped"]
    busy.answer = TraceCollector::OK
    wait_for("all spans", within: 30) { traces_of(server)["waiting"].zero? && traces_of(server)["problem"].nil? }
    exported = traces_of(server)["exported"]
    assert_operator exported, :>=, 800
    assert_equal 0, traces_of(server)["dropped"]
  end

  # A redirect would take credentials elsewhere.
  def test_answers_that_end_a_batch
    other = start_collector
    lines = { 307 => "location: #{other.endpoint}/v1/traces", 400 => "x: y", 401 => "x: y", 500 => "retry-after: 1" }
    lines.each do |status, line|
      refusing = start_collector(answer: TraceCollector.status(status, line))
      server = traced(refusing)
      server.get("/")
      wait_for("the refusal") { traces_of(server)["dropped"].positive? }
      assert_match(/it answers #{status}/, traces_of(server)["problem"])
    end
    assert_empty other.requests
  end

  def test_hostile_answers
    hostile_answers.each do |what, answer|
      server = traced(start_collector(answer: answer), env: { "OTEL_EXPORTER_OTLP_TIMEOUT" => "2000" })
      before = ProcessFacts.private_dirty_bytes([server.server_pid])
      assert_equal 200, server.get("/").status
      wait_for("the effect of #{what}") { traces_of(server).then { |now| now["problem"] || now["exported"].positive? } }
      assert_operator ProcessFacts.private_dirty_bytes([server.server_pid]) - before, :<, 8 * MIB, what
      assert_equal 200, server.get("/").status
    end
  end

  # A collector may say yes, and refuse some of the spans.
  def test_refused_spans_are_counted
    partly = start_collector(answer: "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\x0a\x02\x08\x01")
    server = traced(partly)
    server.get("/")
    wait_for("an answer") { traces_of(server)["exported"].positive? }
    assert_operator traces_of(server)["dropped"], :>=, 1
  end

  def test_https
    authority = TlsFiles.authority
    pair = TlsFiles.issue(["localhost"], by: authority)
    context = OpenSSL::SSL::SSLContext.new.tap { |one| one.add_certificate(pair.certificate, pair.key) }
    tls = ->(socket) { OpenSSL::SSL::SSLSocket.new(socket, context).tap { |one| one.sync_close = true }.accept }
    secure = start_collector(tls: tls)
    file = File.join(folder_with("ca.pem" => authority.pem), "ca.pem")
    endpoint = ["--otlp-endpoint", "https://localhost:#{secure.port}"]
    server = serve(app, *endpoint, ready: "/ready", env: { "OTEL_EXPORTER_OTLP_CERTIFICATE" => file })
    server.get("/secure")
    secure.trace_of("/secure")
    other = File.join(folder_with("ca.pem" => TlsFiles.authority.pem), "ca.pem")
    wary = serve(app, *endpoint, ready: "/ready", env: { "OTEL_EXPORTER_OTLP_CERTIFICATE" => other })
    wait_for("the problem") { traces_of(wary)["problem"]&.match?(/certificate/i) }
  end

  # The last spans are exported before the server ends.
  def test_the_last_spans
    collector = start_collector
    server = traced(collector)
    server.get("/last")
    server.stop
    collector.trace_of("/last", within: 2)
  end

  private

  def hostile_answers
    ok = "HTTP/1.1 200 OK\r\n"
    endless = lambda do |socket|
      socket.write("#{ok}transfer-encoding: chunked\r\n\r\n")
      loop { socket.write("1000\r\n#{'x' * 4096}\r\n") }
    end
    fields = ->(socket) { socket.write(ok) && loop { socket.write("x-field: #{'y' * 1000}\r\n") } }
    line = ->(socket) { loop { socket.write("HTTP/1.1 " * 1000) } }
    { "an endless body" => endless, "an endless head" => fields, "an endless line" => line, "nonsense" => "no\r\n\r\n" }
  end

  # All requests are answered, and none of them late.
  def ask_many(server, count)
    times = server.connect do |client|
      Array.new(count) do
        began = Deadline.now
        assert_equal 200, client.get("/load").status
        Deadline.now - began
      end
    end
    assert_operator percentile(times.sort, 0.99), :<, 0.1
  end

  def assert_recovers(server, gone)
    back = start_collector(port: gone.port)
    back.wait_for("what has waited", within: 60) { |span| span["url.path"] == "/load" }
    wait_for("the end of the outage") { server.log.include?("the collector takes traces again") }
    assert_nil traces_of(server)["problem"]
    server.get("/after")
    back.trace_of("/after")
  end
end
