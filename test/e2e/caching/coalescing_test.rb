# frozen_string_literal: true

require_relative "../../support/cache_test_case"
require_relative "../../support/http2_client"

# Requests for the same answer at the same time: one goes to the application, and the others wait for what it brings.
class CoalescingTest < CacheTestCase
  CLIENTS = 20

  def test_equal_requests_wait_for_one_answer
    answers = with_clients("/slow") { touch("go") }
    assert_equal [[200, "slow 1"]], of(*answers).uniq
    assert_equal 1, asked("/slow")
    assert_equal({ HIT => CLIENTS, STORED => 1 }, answers.map { |answer| says(answer) }.tally)
  end

  def test_streams_of_http2_wait_as_well
    server("--http2-cleartext", "on")
    asking(1, "/slow")
    Http2Client.tcp(server.port).greet.use do |connection|
      streams = [1, 3, 5, 7]
      streams.each { |stream| connection.send_request(stream, "GET", "/slow") }
      connection.reset(3)
      connection.ask(9, "GET", "/counts")
      touch("go")
      (streams - [3]).each { |stream| assert_equal "slow 1", connection.answer(stream).body }
    end
    assert_equal 1, asked("/slow")
  end

  # If the answer cannot be stored, all waiting requests go to the application at once.
  def test_an_answer_that_cannot_be_stored_serialises_nobody
    clients = asking(1, "/slow-private") + asking(5, "/slow-private")
    assert_equal 1, asked("/slow-private")
    touch("go")
    wait_for("the others, at the same time") { asked("/slow-private") == 6 }
    touch("all")
    assert_equal %w[1 2 3 4 5 6], clients.map { |client| client.read_response.body }.sort
  end

  # It is remembered for a while that the answer cannot be stored.
  def test_nobody_waits_for_what_was_not_stored
    server
    touch("go")
    touch("all")
    get("/slow-private")
    FileUtils.rm(File.join(server.app, "all"))
    clients = Array.new(3) { server.connect.tap { |client| client.send_request("GET", "/slow-private") } }
    wait_for("all, at the same time") { asked("/slow-private") == 4 }
    touch("all")
    clients.each { |client| assert_equal 200, client.read_response.status }
  ensure
    clients&.each(&:close)
  end

  def test_the_first_client_may_leave
    leaving = asking(1, "/slow").first
    waiting = asking(3, "/slow")
    leave(leaving)
    others = asking(2, "/slow")
    touch("go")
    answers = (waiting + others).map(&:read_response)
    assert_equal [[200, "slow 1"]], of(*answers).uniq
    assert_equal 1, asked("/slow")
  end

  def test_the_first_client_may_leave_while_the_body_comes
    leaving = asking(1, "/slow-body").first
    waiting = asking(3, "/slow-body")
    leaving.read_some
    leave(leaving)
    touch("go")
    assert_equal ["head 1"], waiting.map { |client| client.read_response.body }.uniq
    assert_equal 1, asked("/slow-body")
  end

  def test_one_that_waits_may_leave
    first = asking(1, "/slow")
    leaving, staying = asking(2, "/slow")
    leave(leaving)
    touch("go")
    assert_equal [[200, "slow 1"]], of(first.first.read_response, staying.read_response).uniq
  end

  def test_a_slow_first_client_holds_up_nobody
    server(cache: "64m")
    slow = server.connect
    slow.send_request("GET", "/large")
    slow.read_some
    answers = concurrently(4) { get("/large", within: 10) }
    assert_equal [3_000_000], answers.map { |answer| answer.body.bytesize }.uniq
  ensure
    slow&.close
  end

  # A request that was begun by a worker that dies is repeated once, for all.
  def test_the_worker_may_die
    clients = asking(4, "/dying")
    touch("died")
    touch("go")
    assert_equal [[200, "alive"]], of(*clients.map(&:read_response)).uniq
  end

  def test_an_answer_that_is_cut_off_is_not_stored
    assert_raises(EOFError, Errno::ECONNRESET) { get("/cut") }
    assert_equal "some 2", get("/cut").body
    assert_equal [HIT, "some 2"], [says(hit = get("/cut")), hit.body]
  end

  def test_other_values_of_vary_do_not_wait_for_each_other
    get("/language", { "Accept-Language" => "de" })
    answers = concurrently(8) { |index| get("/language", { "Accept-Language" => "l#{index % 4}" }) }
    assert_equal 4, answers.map { |answer| answer.body[/\Al\d/] }.uniq.length
  end

  private

  # Clients that have sent a request, which the server has begun to serve.
  def asking(count, path)
    clients = Array.new(count) { server.connect.tap { |client| client.send_request("GET", path) } }
    (@clients ||= []).concat(clients)
    wait_for("a request") { asked(path).positive? }
    3.times { get("/counts") } # the event loop has seen what was sent before
    clients
  end

  # Its machine says at once that it has left.
  def leave(client)
    reset_connection(client.socket)
    3.times { get("/counts") }
  end

  def teardown
    @clients&.each(&:close)
    super
  end

  # The answers to one client and others that ask at the same time, after the block.
  def with_clients(path)
    clients = asking(1, path) + asking(CLIENTS, path)
    yield
    clients.map(&:read_response)
  end
end
