# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/env_mirror"

# How long a request has waited for a worker: for the application, for its APM gem and for the client.
class QueueTimeTest < E2ETest
  include EnvMirror

  parallelize_me!

  PROXY = "127.0.0.1"
  VISITOR = "127.0.0.9"

  APP = <<~'RUBY'
    run lambda { |env|
      env["rack.input"]&.read
      sleep 0.5 if env["PATH_INFO"] == "/slow"
      seen = env.values_at("highball.queue_time", "HTTP_X_REQUEST_START", "HTTP_X_QUEUE_START")
      [200, { "server-timing" => "db;dur=1" }, [Marshal.dump(seen)]]
    }
  RUBY

  def test_the_time_in_the_queue
    server = serve_app(threads: 1)
    short, start, = seen(server.get("/"))
    assert_kind_of Float, short
    assert_nil start
    slow = server.connect.tap { |connection| connection.send_request("GET", "/slow") }
    wait_for("the worker to be busy") { server.status["workers"].sum { |worker| worker["in_flight"] } == 1 }
    waited, = seen(server.get("/"))
    assert_operator waited, :>, 0.1
    assert_operator waited, :<, 5
    assert_operator seen(slow.read_response).first, :<, waited
  ensure
    slow&.close
  end

  # The worker is free all the time: the client takes its time.
  def test_what_a_client_takes_to_send_its_body_is_no_wait_for_a_worker
    server = serve_app("--request-start", "on")
    begun = Time.now
    answer = server.connect do |connection|
      connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab")
      wait_for("a second to pass") { Time.now - begun > 1 }
      connection.write("c").read_response
    end
    waited, start, = seen(answer)
    assert_operator waited, :<, 1
    assert_operator Float(start) / 1000, :>, begun.to_f + 0.9
  end

  def test_a_trusted_proxy_has_had_the_request_before
    server = serve_app("--trusted-proxies", PROXY, "--request-start", "on")
    [->(at) { "t=#{at}" }, ->(at) { (at * 1000).to_i.to_s }, ->(at) { "t=#{(at * 1_000_000).to_i}" }].each do |form|
      %w[X-Request-Start X-Queue-Start].each do |name|
        field = form.call(Time.now.to_f - 30)
        waited, *starts = seen(ask(server, PROXY, name => field))
        assert_in_delta 30, waited, 5, field
        assert_equal [field], starts.compact, "it is passed on, and has no other beside it"
      end
    end
    assert_operator seen(ask(server, PROXY)).first, :<, 5, "the next request is another one"
    assert_operator seen(ask(server, PROXY, "X-Request-Start" => "t=12")).first, :<, 5
  end

  def test_nobody_else_is_believed
    server = serve_app("--trusted-proxies", PROXY, "--request-start", "on")
    before = Time.now
    forged = { "X-Request-Start" => "t=#{before.to_f - 30}", "X-Queue-Start" => "t=#{before.to_f - 30}" }
    waited, start, other = seen(ask(server, VISITOR, forged))
    assert_operator waited, :<, 5
    assert_in_delta before.to_f, Float(start) / 1000, 10
    assert_nil other
  end

  # As with other servers: it is not known who has sent the field.
  def test_without_known_proxies_the_field_is_the_applications_to_judge
    server = serve_app("--request-start", "on")
    field = "t=#{Time.now.to_f - 30}"
    waited, start, = seen(ask(server, VISITOR, "X-Request-Start" => field))
    assert_operator waited, :<, 5
    assert_equal field, start
    _, start, = seen(ask(server, VISITOR))
    assert_match(/\A\d{13}\z/, start)
  end

  def test_clients_see_where_the_time_went
    server = serve_app("--server-timing", "on", "--trusted-proxies", PROXY)
    [server.get("/slow"), server.get("/slow", { "X-Request-Start" => "t=#{Time.now.to_f - 30}" })].each do |answer|
      fields = answer.values("server-timing")
      assert_equal "db;dur=1", fields.first, "the application's own stays"
      spans = fields.last.scan(/(\w+);dur=([\d.]+)/).to_h
      assert_operator Float(spans["app"]), :>=, 500
      assert_operator Float(spans["queue"]), :<, 5000
      assert_in_delta 30_000, Float(spans["proxy"]), 5000 if spans["proxy"]
    end
    assert_equal ["db;dur=1"], serve_app.get("/").values("server-timing")
  end

  private

  def serve_app(*options, threads: 3)
    serve(folder_with("config.ru" => APP), *options, workers: 1, threads: threads)
  end

  def ask(server, from, fields = {})
    connect_from(server, from) { |connection| connection.request("GET", "/", fields) }
  end

  # What the application has got: queue time, X-Request-Start and X-Queue-Start.
  def seen(answer) = Marshal.load(answer.body) # rubocop:disable Security/MarshalLoad -- the test's own application
end
