# frozen_string_literal: true

require_relative "../../support/gateway_test_case"
require_relative "../../support/http2_client"
require_relative "../../support/env_mirror"

# Ids of requests and of the traces that they belong to: what applications, visitors and the access log get to know.
class RequestIdsTest < GatewayTestCase
  include EnvMirror

  APP = <<~RUBY
    require "json"
    run lambda { |env|
      raise "the reason" if env["PATH_INFO"] == "/raise"
      Process.kill("KILL", Process.pid) && sleep if env["PATH_INFO"] == "/kill"

      fields = { "content-type" => "application/json" }
      fields["X-Request-ID"] = "of-the-application" if env["PATH_INFO"] == "/own"
      [200, fields, [env.select { |_, value| value.is_a?(String) }.to_json]]
    }
  RUBY
  UUID = /\A\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/
  REFUSED = ["a b", "a\"b", "<script>", "a;b", "Root=1-67891233-abcdef", "a,b", "\u00e9".b, "a" * 256, ""].freeze
  PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  def test_a_request_without_one_gets_one
    ids = Array.new(300) do
      answer = server.get("/")
      id = answer["x-request-id"]
      assert_match UUID, id
      assert_equal id, env_of(answer.body)["HTTP_X_REQUEST_ID"]
      id
    end
    assert_equal ids, ids.uniq
  end

  def test_a_sane_one_is_kept
    ["7", "job_42@worker-7", "a" * 255].each do |id|
      answer = server.get("/", { "X-Request-Id" => id })
      assert_equal [id, id], [answer["x-request-id"], env_of(answer.body)["HTTP_X_REQUEST_ID"]]
    end
  end

  def test_no_other_reaches_the_application_the_client_or_the_log
    REFUSED.each do |id|
      answer = server.get("/", { "X-Request-Id" => id })
      made = answer["x-request-id"]
      assert_match UUID, made, id
      assert_equal [made], env_of(answer.body).select { |key, _| key.include?("REQUEST_ID") }.values, id
    end
    twice = server.exchange("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: one\r\nX-Request-Id: two\r\n" \
                            "X_Request_Id: three\r\nConnection: close\r\n\r\n").join
    refute_match(/one|two|three/, twice)
    assert_equal 2, twice.scan(/\h{8}-\h{4}-4/).size
    wait_for("the access log") { log_lines.size > REFUSED.size }
    assert(log_lines.all? { |line| line.split.last.match?(UUID) }, log_lines.join)
  end

  # The id of one request is not that of the next on the same connection.
  def test_requests_on_a_connection_have_ids_of_their_own
    server.connect do |connection|
      ids = ["kept", nil, nil].map do |id|
        connection.request("GET", "/", id ? { "X-Request-Id" => id } : {})["x-request-id"]
      end
      assert_equal "kept", ids.first
      assert_equal 3, ids.uniq.size
    end
  end

  def test_what_the_application_answers_counts
    answer = server.get("/own", { "X-Request-Id" => "of-the-client" })
    assert_equal ["of-the-application"], answer.values("x-request-id")
  end

  def test_files_have_one
    answers = [server.get("/a.txt"), server.get("/a.txt", { "X-Request-Id" => "seven" })]
    assert_equal ["a file\n"], answers.map(&:body).uniq
    assert_match UUID, answers.first["x-request-id"]
    assert_equal "seven", answers.last["x-request-id"]
  end

  def test_visitors_can_quote_the_id_of_an_error
    answer = server.get("/raise", { "X-Request-Id" => "quoted-by-a-visitor" })
    assert_equal [500, "quoted-by-a-visitor"], [answer.status, answer["x-request-id"]]
    assert_includes answer.body, "Request id: quoted-by-a-visitor\n"
    wait_for("the log") { server.log.match?(/raised an exception.* id="?quoted-by-a-visitor/) }
    malformed = server.exchange("GET / HTTP/1.1\r\nHost : a\r\nX-Request-Id: unread\r\n\r\n").first
    id = malformed["x-request-id"]
    assert_match UUID, id
    assert_equal [400, "Request id: #{id}"], [malformed.status, malformed.body.lines.last.chomp]
    wait_for("the access log") { log_lines.any? { |line| line.end_with?(" #{id}\n") } }
  end

  def test_the_log_names_the_request_whose_worker_died
    answer = server.get("/kill", { "X-Request-Id" => "the-fatal-one" })
    assert_equal [502, "the-fatal-one"], [answer.status, answer["x-request-id"]]
    wait_for("the log") { server.log.include?("the-fatal-one") }
  end

  def test_the_access_log_ends_with_it
    server.get("/x", { "X-Request-Id" => "logged" })
    wait_for("the access log") { log_lines.any? { |line| line.include?('"GET /x ') && line.end_with?(" logged\n") } }
  end

  def test_over_every_protocol
    server = serve_all(app, "--request-id", "on", "--http2-cleartext", "on")
    with_each(server) do |connection, protocol|
      made = connection.get("/")
      assert_match UUID, made["x-request-id"], protocol
      assert_equal made["x-request-id"], env_of(made.body)["HTTP_X_REQUEST_ID"], protocol
      kept = connection.get("/", { "X-Request-Id" => "kept", "Traceparent" => "0-0-0-0" })
      assert_equal "kept", kept["x-request-id"], protocol
      refute_includes env_of(kept.body), "HTTP_TRACEPARENT", protocol
    end
    Http2Client.tcp(server.port).greet.use { |client| assert_http2(client) }
  end

  def test_with_trusted_proxies_only_theirs_are_kept
    server = serve(app, "--request-id", "on", "--trusted-proxies", "127.0.0.1")
    { "127.0.0.1" => "by-the-proxy", "127.0.0.9" => nil }.each do |address, kept|
      connect_from(server, address) do |connection|
        answer = connection.get("/", { "X-Request-Id" => "by-the-proxy", "Traceparent" => PARENT })
        env = env_of(answer.body)
        assert_equal answer["x-request-id"], env["HTTP_X_REQUEST_ID"]
        kept ? assert_equal(kept, answer["x-request-id"]) : assert_match(UUID, answer["x-request-id"])
        assert_equal PARENT, env["HTTP_TRACEPARENT"]
      end
    end
  end

  def test_without_the_option_the_field_is_passed_on_as_it_came
    server = serve(app)
    answer = server.get("/", { "X-Request-Id" => "a b" })
    assert_equal [nil, "a b"], [answer["x-request-id"], env_of(answer.body)["HTTP_X_REQUEST_ID"]]
    refute_includes env_of(server.get("/").body), "HTTP_X_REQUEST_ID"
  end

  def test_a_valid_trace_is_passed_on_and_no_other
    server = serve(app) # whether requests get ids or not
    trace = { "Traceparent" => PARENT, "Tracestate" => "a=1,b=2" }
    assert_equal trace.values, trace_of(server, trace)
    [PARENT.upcase, PARENT.sub("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32), "#{PARENT}-x", PARENT[0..-2],
     PARENT.sub("00-", "ff-"), "x"].each do |parent|
      assert_equal [nil, nil], trace_of(server, trace.merge("Traceparent" => parent)), parent
    end
    assert_equal [nil, nil], trace_of(server, "Tracestate" => "a=1")
    assert_equal [nil, nil], trace_of(server, {})
  end

  private

  def app = folder_with("config.ru" => APP, "public/a.txt" => "a file\n")

  def server
    @server ||= begin
      @log = File.join(folder_with, "access.log")
      serve(app, "--request-id", "on", "--access-log", @log)
    end
  end

  # Lines of requests that the test has sent: at the start, some ask whether the server is there.
  def log_lines = File.exist?(@log) ? File.readlines(@log) : []

  def trace_of(server, fields) = env_of(server.get("/", fields).body).values_at("HTTP_TRACEPARENT", "HTTP_TRACESTATE")

  # Of answers, the client reads the body alone.
  def assert_http2(client)
    client.send_request(1, "GET", "/")
    client.send_request(3, "GET", "/", { "x-request-id" => "kept", "traceparent" => PARENT })
    client.send_request(5, "GET", "/raise", { "x-request-id" => "of-an-error" })
    made, kept, failed = [1, 3, 5].map { |stream| client.answer(stream).body }
    assert_match UUID, env_of(made)["HTTP_X_REQUEST_ID"]
    assert_equal ["kept", PARENT], env_of(kept).values_at("HTTP_X_REQUEST_ID", "HTTP_TRACEPARENT")
    assert_includes failed, "Request id: of-an-error\n"
  end
end
