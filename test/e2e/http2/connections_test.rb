# frozen_string_literal: true

require_relative "../../support/http2_load"
require_relative "../../support/http2_test_case"

# Connections of HTTP/2: what their streams share, limits, slow and leaving clients, and the end.
class Http2ConnectionsTest < Http2TestCase
  WINDOW = Http2Client::INITIAL_WINDOW_SIZE
  LARGE = 20 * MIB

  def test_a_reset_takes_a_request_out_of_the_queue
    server = serve_http2("probe", threads: 1)
    http2(server) do |client|
      client.send_request(1, "GET", "/sleep?ms=3000")
      wait_for("the first to begin") { server.log.include?("probe begins /sleep") }
      client.send_request(3, "GET", "/reset")
      client.send_request(5, "GET", "/kept")
      wait_for("the queue") { server.status["queue"] == 2 }
      client.reset(3)
      wait_for("the queue to be shorter") { server.status["queue"] == 1 }
      assert_equal [200, 404], [client.answer(1).status, client.answer(5).status]
    end
    assert_equal ["GET /kept"], targets(server).grep(/reset|kept/)
  end

  def test_the_end_of_a_connection_takes_all_of_its_requests_out_of_the_queue
    server = serve_http2("probe", threads: 1)
    http2(server) do |client|
      client.send_request(1, "GET", "/sleep?ms=3000")
      wait_for("the first to begin") { server.log.include?("probe begins /sleep") }
      [3, 5, 7].each { |stream| client.send_request(stream, "GET", "/left") }
      wait_for("the queue") { server.status["queue"] == 3 }
    end
    wait_for("an empty queue") { server.status["queue"].zero? }
    assert_empty targets(server).grep(/left/)
  end

  def test_the_queue_is_bounded_for_the_streams_of_a_connection_too
    server = serve_http2("probe", "--max-queue", "3", threads: 1)
    http2(server) do |client|
      client.send_request(1, "GET", "/sleep?ms=3000")
      wait_for("the first to begin") { server.log.include?("probe begins /sleep") }
      streams = Array.new(10) { |number| 3 + (2 * number) }
      streams.each { |stream| client.send_request(stream, "GET", "/") }
      assert_equal({ 200 => 3, 503 => 7 }, streams.map { |stream| client.answer(stream).status }.tally)
    end
  end

  # Without room in its window, a response goes to a spool file: the only thread serves the next request.
  def test_a_slow_reader_holds_neither_the_worker_nor_other_streams
    server = serve_http2("probe", threads: 1)
    http2(server, { WINDOW => 0 }) do |client|
      client.send_request(1, "GET", "/download?bytes=#{LARGE}")
      assert_equal 200, server.get("/").status
      client.send_request(3, "GET", "/")
      client.give(3, 1000)
      assert_equal "probe\n", client.answer(3).body
      client.give(1, LARGE)
      assert_equal LARGE, client.answer(1).body.bytesize
    end
  end

  # The windows are wide open, and the socket is slow: each stream has its turn.
  def test_large_responses_share_a_socket_that_is_slow
    server = serve_http2(probe_with("public/large.bin" => "x" * (8 * MIB)))
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_RCVBUF, 65_536)
    socket.connect(Socket.sockaddr_in(server.port, "127.0.0.1"))
    Http2Client.new(socket).greet({ WINDOW => 0x7fff_ffff }).use do |client|
      client.give(0, 0x7fff_0000)
      streams = [1, 3, 5, 7, 9]
      streams.each { |stream| client.send_request(stream, "GET", "/large.bin") }
      bytes = -> { streams.map { |stream| client.part(stream).body.bytesize } }
      client.read_until { bytes.call.sum > 15 * MIB }
      assert_operator bytes.call.min, :>, MIB
      assert_equal [8 * MIB] * 5, (streams.map { |stream| client.answer(stream).body.bytesize })
    end
  end

  def test_a_window_of_a_byte_at_a_time
    server = serve_http2("probe")
    http2(server, { WINDOW => 1 }) do |client|
      answer = client.ask(1, "GET", "/download?bytes=1000&length=1")
      assert_equal [1000, true], [answer.body.bytesize, answer.is_complete]
    end
  end

  def test_a_client_that_takes_nothing_is_given_up
    server = serve_http2("probe", "--send-timeout", "1s")
    http2(server, { WINDOW => 0 }) do |client|
      assert_equal 2, client.ask(1, "GET", "/download?bytes=#{LARGE}").reset, "INTERNAL_ERROR"
      assert_equal 200, client.ask(3, "HEAD", "/").status
    end
    wait_for("no spool files") { server.status["spool_bytes"].zero? }
  end

  # A disk's back-pressure is tested with HTTP/1; here, a body that nothing reads does not grow.
  def test_the_windows_bound_what_a_client_may_send
    server = serve_http2("probe")
    http2(server) do |client|
      assert_operator client.server_settings.fetch(WINDOW), :<=, 256 * 1024
    end
  end

  def test_a_body_that_pauses_for_too_long
    server = serve_http2("probe", "--body-timeout", "500ms")
    http2(server) do |client|
      answer = client.ask(1, "POST", "/upload", {}, "beginning", is_complete: false)
      assert_equal [408, true], [answer.status, answer.is_complete]
      assert_equal 200, client.ask(3, "GET", "/").status
    end
  end

  def test_streams_beyond_the_limit_are_refused_unread
    server = serve_http2("probe", "--http2-streams", "2")
    http2(server) do |client|
      assert_equal 2, client.server_settings.fetch(Http2Client::MAX_CONCURRENT_STREAMS)
      [1, 3].each { |stream| client.send_request(stream, "GET", "/sleep?ms=1000") }
      assert_equal Http2Client::REFUSED_STREAM, client.ask(5, "GET", "/beyond").reset
      assert_equal [200, 200], [client.answer(1).status, client.answer(3).status]
      assert_equal 200, client.ask(7, "GET", "/").status
    end
    assert_empty targets(server).grep(/beyond/)
  end

  def test_an_idle_connection_ends_with_a_goodbye
    server = serve_http2("probe", "--idle-timeout", "500ms")
    http2(server) do |client|
      client.send_request(1, "GET", "/sleep?ms=1000") # it is not idle meanwhile
      assert_equal 200, client.answer(1).status
      assert_equal Http2Client::NO_ERROR, client.read_to_end
    end
    # Nor is one kept that only says that it is there.
    http2(server) do |client|
      assert_raises(Errno::EPIPE, Errno::ECONNRESET, EOFError) do
        loop do
          client.write_frame(Http2Client::PING, 0, 0, "12345678")
          client.read_frame
        end
      end
    end
  end

  # It confirms nothing, and learns all the same which of its requests were served.
  def test_an_idle_connection_of_a_client_that_is_deaf_ends_with_the_last_request_that_was_served
    server = serve_http2("probe", "--idle-timeout", "500ms")
    http2(server) do |client|
      assert_equal 200, client.ask(1, "GET", "/").status
      client.is_deaf = true
      client.read_to_end
      assert_equal [1, Http2Client::NO_ERROR], client.goaway
    end
  end

  def test_an_idle_connection_makes_room_for_another_and_a_busy_one_does_not
    server = serve_http2("probe", "--max-connections", "2")
    http2(server) do |busy|
      busy.send_request(1, "GET", "/held")
      busy.read_until { busy.part(1).statuses.any? }
      http2(server) do |idle|
        idle.ask(1, "GET", "/")
        assert_equal 200, server.get("/release").status
        assert_equal Http2Client::NO_ERROR, idle.read_to_end
      end
      assert_equal "first\nlast\n", busy.answer(1).body
    end
  end

  def test_a_server_that_stops_finishes_what_it_has_begun
    server = serve_http2("probe", threads: 1)
    client = http2(server)
    client.send_request(1, "GET", "/sleep?ms=3000")
    wait_for("the first to begin") { server.log.include?("probe begins /sleep") }
    client.send_request(3, "GET", "/") # waits in the queue
    client.send_request(5, "POST", "/echo", {}, "a", is_complete: false) # is not there yet
    wait_for("the queue") { server.status["queue"] == 1 }
    server.signal("TERM")
    client.read_until { client.goaway }
    client.write_frame(Http2Client::DATA, Http2Client::END_STREAM, 5, "b")
    answers = [1, 3, 5].map { |stream| client.answer(stream) }
    assert_equal [200] * 3, answers.map(&:status)
    assert_equal "ab", JSON.parse(answers.last.body)["body"]
    assert_equal Http2Client::NO_ERROR, client.read_to_end
    assert_predicate server.wait, :success?
  ensure
    client&.close
  end

  def test_restarts_lose_nothing
    server = serve_http2("probe", workers: 2)
    load = Http2Load.during(server) do
      2.times do
        highball("restart", *server.which, within: 60)
      end
    end
    assert_empty load.failures
    assert_equal 4, load.connections, "a rolling restart ends no connection"
  end

  def test_hot_restarts_lose_nothing
    server = serve_http2("probe", workers: 2)
    load = Http2Load.during(server) do |clients|
      highball("upgrade", *server.which, within: 60)
      wait_for("each to go on with the next server") { clients.connections >= 8 || clients.failures.any? }
    end
    assert_empty load.failures
  end
end
