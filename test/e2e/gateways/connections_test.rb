# frozen_string_literal: true

require_relative "../../support/gateway_test_case"

# Connections of web servers by FastCGI and LSAPI: what is sent when, and how they end.
class GatewayConnectionsTest < GatewayTestCase
  CLIENTS_AT_ONCE = 25
  KEPT = 1000
  # What a web server sees of an answer that is cut off: its connection ends within it, or has a record that is none.
  BROKEN = [CgiConnection::BadAnswer, EOFError, Errno::ECONNRESET].freeze
  CUT_OFF = ["/raise-late", "/raise-late?length=1", "/wrong-length?length=100&shape=pause"].freeze
  # Takes the connection over as it is, though its env does not offer that.
  TAKING = <<~RUBY
    run lambda { |env|
      next [200, {}, []] unless env["PATH_INFO"] == "/take"

      ring = Highball::Hijack.ring
      Highball::Hijack.take_over(ring, ring.ticket_of(env)).close
      [-1, {}, []]
    }
  RUBY
  # Answers what the env offers, by a partial hijack.
  SPEAKING = <<~RUBY
    run lambda { |env|
      offered = [env["rack.hijack?"], env.key?("rack.hijack"), env.key?("rack.version")]
      speak = lambda { |socket| socket.write(offered.inspect) && socket.close }
      [200, { "rack.hijack" => speak }, []]
    }
  RUBY

  # Each piece arrives before the application makes the next; many requests on one connection; many connections at once.
  def test_the_usual_life
    server = serve_all("probe", "--max-body", "1000", threads: 5)
    with_each(server) do |connection, protocol|
      assert_streams(server, connection, protocol)
      KEPT.times { |number| assert_equal "?#{number}", query_of(connection.get("/echo?#{number}")), protocol }
    end
    CLIENTS.each_key do |protocol|
      concurrently(CLIENTS_AT_ONCE) do |client|
        gateway(server, protocol) do |connection|
          ask_often(connection, client)
        end
      end
    end
    ends_where_the_web_server_asks_for_it(server)
    refuses_large_bodies(server)
  end

  # The length of a body shows its end, so that the answer may come before the record that marks it. A web server that
  # finds the connection closed when it sends that record reports an error instead of the answer.
  def test_a_web_server_that_sends_the_end_of_the_body_after_the_answer
    server = serve_all("probe")
    gateway(server, "fastcgi") do |connection|
      connection.begin_request(keep: false)
      connection.write_params(connection.params_of("POST", "/echo", {}, 0).compact)
      assert_equal 200, connection.read_response.status
      assert_predicate connection, :ended?
      2.times { connection.end_body } # the first one would be answered with a reset, which the second one would meet
    end
  end

  # --- a web server that does not wait for the answer

  def test_an_abort_while_the_request_is_queued
    server = serve_all("probe", threads: 1)
    CLIENTS.each_key do |protocol|
      with_the_worker_busy(server, protocol) do
        gateway(server, protocol) do |connection|
          connection.send_request("POST", "/queued-#{protocol}", {}, "x")
          wait_for("the queue") { server.status["queue"] == 1 }
          connection.abort
          assert_nil connection.read_response, protocol
        end
        wait_for("an empty queue") { server.status["queue"].zero? }
      end
    end
    assert_empty(targets(server).grep(/queued/))
  end

  def test_an_abort_while_the_request_runs
    server = serve_all("probe", threads: 1)
    CLIENTS.each_key.with_index(1) do |protocol, number|
      gateway(server, protocol) do |connection|
        begin_long(connection)
        connection.abort
      end
      # Its only thread is free again, since the next write found no reader.
      wait_for("the end of the body") { counts(server)["closed"] == number }
    end
  end

  # --- answers that cannot be completed

  def test_answers_that_are_cut_off
    server = serve_all("probe")
    CUT_OFF.product(CLIENTS.keys).each do |target, protocol|
      gateway(server, protocol) { |connection| assert_cut_off(connection, target, protocol) }
    end
  end

  # A web server expects an answer by its protocol, not the bytes of an application.
  def test_connections_that_an_application_takes_over
    server = serve_all(folder_with("config.ru" => TAKING))
    with_each(server) { |connection, protocol| assert_cut_off(connection, "/take", protocol) }
    assert_includes server.log, "the application has taken over a connection whose protocol needs an answer"
  end

  def test_a_partial_hijack
    server = serve_all(folder_with("config.ru" => SPEAKING))
    *both, rack2 = JSON.parse(server.get("/").body)
    assert_equal [true, true], both
    with_each(server) do |connection, protocol|
      answer = connection.get("/")
      assert_equal [200, [!rack2, false, rack2]], [answer.status, JSON.parse(answer.body)], protocol
    end
  end

  def test_a_worker_that_is_killed_within_an_answer
    server = serve_all("probe")
    with_each(server) do |connection, protocol|
      pid = server.get("/pid").body.to_i
      begin_long(connection)
      HighballServer.kill(pid)
      assert_raises(*BROKEN, protocol) { connection.read_response { |piece| piece } }
      wait_for("a new worker") { server.get("/pid").body.to_i != pid }
    end
  end

  def test_a_worker_that_is_killed_before_an_answer
    server = serve_all("probe")
    with_each(server) do |connection, protocol|
      assert_equal 502, connection.request("POST", "/die", {}, "x").status, protocol
      assert_predicate connection, :ended?
      wait_for("a new worker") { server.get("/").status == 200 }
    end
  end

  def test_a_full_queue
    server = serve_all("probe", "--max-queue", "1", threads: 1)
    with_the_worker_busy(server, "fastcgi") do
      queued = server.connect.tap { |connection| connection.send_request("GET", "/queued") }
      wait_for("the queue") { server.status["queue"] == 1 }
      with_each(server) do |connection, protocol|
        refused = connection.get("/refused")
        assert_equal 503, refused.status, protocol
        refute_nil refused["retry-after"], protocol
        assert_equal 503, connection.get("/refused").status, "#{protocol}: on the same connection"
      end
    ensure
      queued&.close
    end
    wait_for("the end of the queue") { server.status["queue"].zero? }
    assert_empty(targets(server).grep(/refused/))
  end

  private

  def query_of(answer)
    "?#{JSON.parse(answer.body).dig('env', 'QUERY_STRING')}"
  end

  def assert_streams(server, connection, protocol)
    connection.send_request("GET", "/held")
    pieces = []
    answer = connection.read_response do |piece|
      pieces << piece
      server.get("/release") if pieces.join == "first\n"
    end
    assert_equal [200, "first\nlast\n"], [answer.status, pieces.join], protocol
  end

  def ask_often(connection, client)
    10.times do |number|
      words = "#{client}-#{number}-" * (number.even? ? 1 : 20)
      echo = JSON.parse(connection.request("POST", "/echo", {}, words).body)
      assert_equal words, echo["body"]
    end
  end

  # FastCGI names the wish with each request; LSAPI has none, and its web servers close their end.
  def ends_where_the_web_server_asks_for_it(server)
    gateway(server, "fastcgi") do |connection|
      assert_equal 200, connection.get("/", keep: true).status
      assert_equal 200, connection.get("/", keep: false).status
      assert_predicate connection, :ended?
    end
  end

  def refuses_large_bodies(server)
    with_each(server) do |connection, protocol|
      assert_equal 404, connection.request("POST", "/large-#{protocol}", {}, "x" * 1000).status
      assert_equal 413, connection.request("POST", "/larger-#{protocol}", {}, "x" * 1001).status, protocol
      assert_predicate connection, :ended?
    end
    gateway(server, "fastcgi") do |connection|
      assert_equal 413, connection.request("POST", "/larger-unknown", {}, ["x" * 600, "x" * 600]).status
    end
    assert_empty(targets(server).grep(/larger/))
  end

  # Runs the block while the only thread of the only worker has a request.
  def with_the_worker_busy(server, protocol)
    gateway(server, protocol) do |busy|
      begin_long(busy)
      yield
    end
  end

  # An answer has begun that takes 10 seconds.
  def begin_long(connection)
    connection.send_request("GET", "/download?bytes=200000&piece=100&pause_ms=5")
    # More than the confirmation of the request, which LSAPI has.
    wait_for("the answer") { connection.socket.recv(16, Socket::MSG_PEEK).bytesize == 16 }
  end

  def assert_cut_off(connection, target, protocol)
    connection.send_request("GET", target)
    assert_raises(*BROKEN, "#{protocol}: #{target}") { connection.read_response }
    refute_equal FastcgiClient::REQUEST_COMPLETE, connection.protocol_status if protocol == "fastcgi"
  end
end
