# frozen_string_literal: true

require "zlib"
require_relative "../../support/e2e_test"
require_relative "../../support/http2_client"
require_relative "../../support/open_stream"
require_relative "../../support/stream_app"

# Answers that go on for long leave the pool of threads.
class StreamsTest < E2ETest
  LINES = Array.new(20) { |number| "line #{number}\n" }.join
  # What follows the first line.
  REST = LINES.delete_prefix("line 0\n").freeze

  def test_streams_take_no_thread_from_other_requests
    start(threads: 2)
    streams = %w[each call partial].flat_map { |kind| Array.new(10) { open_stream("/#{kind}?n=20&ms=100") } }
    streams.each { |stream| assert_equal "line 0\n", stream.first }
    took = timings(20) { assert_equal "hello", @server.get("/hello").body }
    assert_operator percentile(took, 0.9), :<, 1
    assert_operator streaming, :>, 20
    streams.each { |stream| assert_equal [REST, true], stream.rest, stream.path }
    wait_for("their threads to end") { streaming.zero? }
    wait_for("all bodies to be closed, and callbacks called") { state.values_at("closed", "after_reply").min >= 10 }
  end

  def test_streams_of_http2
    start("--http2-cleartext", "on", threads: 2)
    client = Http2Client.tcp(@server.port).greet
    numbers = Array.new(20) { |number| (2 * number) + 1 }
    numbers.each { |number| client.send_request(number, "GET", "/#{%w[each call][number / 2 % 2]}?n=20&ms=50") }
    client.read_until { numbers.all? { |number| client.part(number).body.start_with?("line 0\n") } }
    assert_equal "hello", @server.get("/hello").body
    numbers.each do |number|
      answer = client.answer(number)
      assert_equal [200, LINES, nil], [answer.status, answer.body, answer.reset]
    end
    client.send_request(101, "GET", "/call?n=1000&ms=20")
    client.read_until { client.part(101).body.include?("line 9\n") }
    client.reset(101)
    wait_for("the writer to learn it", within: 2) { state["EPIPE"] == 1 }
  end

  def test_http_1_0_and_compression
    start(threads: 2)
    @server.connect do |connection|
      connection.send_request("GET", "/each?n=20&ms=30", version: "1.0")
      answer = connection.read_response
      assert_equal [LINES, nil], [answer.body, answer["transfer-encoding"]]
    end
    pieces = []
    @server.connect do |connection|
      connection.send_request("GET", "/each?n=20&ms=50", { "Accept-Encoding" => "gzip" })
      answer = connection.read_response { |piece| pieces << [piece, Deadline.now] }
      assert_equal "gzip", answer["content-encoding"]
    end
    assert_equal LINES, Zlib.gunzip(pieces.map(&:first).join)
    assert_operator pieces.last.last - pieces.first.last, :>, 0.5
  end

  def test_the_access_log_has_the_final_figures
    log = File.join(folder_with, "access.log")
    start("--access-log", log, threads: 2)
    stream = open_stream("/each?n=20&ms=50")
    assert_equal [LINES, true], ["#{stream.first}#{stream.rest.first}", true]
    wait_for("the line") { File.exist?(log) && File.read(log).include?("/each") }
    line = File.readlines(log).grep(%r{/each}).first
    assert_includes line, " 200 #{LINES.bytesize} "
    open_stream("/call?n=1000&ms=50").tap(&:first).close
    wait_for("the line of one whose client has left") { File.readlines(log).grep(%r{/call.* 499 }).any? }
  end

  def test_a_writer_waits_for_its_client_and_learns_that_it_has_left
    start(threads: 2)
    streams = Array.new(5) { open_stream("/flood") }
    streams.each { |stream| stream.connection.read_some }
    wait_for("the writers to wait") { (before = state["flood"]) && sleep(0.3) && state["flood"] == before }
    assert_equal "hello", @server.get("/hello").body
    streams.each(&:close)
    wait_for("the bodies to be closed", within: 5) { state["closed"] == 5 }
  end

  def test_disconnects_are_reported_within_a_second
    start(threads: 2)
    streams = ["/call?n=1000&ms=50", "/until_closed"].map { |path| open_stream(path) }
    streams.each(&:first)
    streams.each(&:close)
    left = Deadline.now
    wait_for("both to know") { state.values_at("EPIPE", "saw_closed") == [1, 1] }
    assert_operator Deadline.now - left, :<, 2
  end

  def test_there_is_a_limit_and_others_are_served_beyond_it
    start("--max-streams", "3", "--drain-timeout", "1s", threads: 2)
    streams = Array.new(3) { open_stream("/silent") }
    streams.each { |stream| assert_equal "one\n", stream.first }
    wait_for("them to leave") { streaming == 3 }
    refused = @server.get("/call")
    assert_equal [503, "5"], [refused.status, refused["retry-after"]]
    surplus = Array.new(4) { open_stream("/each?n=1000&ms=50") }
    3.times { assert_equal "hello", @server.get("/hello").body }
    assert(surplus.any? { |stream| !stream.rest.last }, "one was cut off for the sake of the others")
  end

  def test_a_silent_stream_ends_where_that_is_asked_for
    start("--stream-idle-timeout", "500ms", "--drain-timeout", "1s", threads: 2)
    stream = open_stream("/silent")
    assert_equal "one\n", stream.first
    assert_equal ["", false], stream.rest
  end

  def test_many_more_than_the_limit
    start("--max-streams", "20", "--drain-timeout", "1s", threads: 2)
    connections = Array.new(200) { @server.connect.tap { |one| one.send_request("GET", "/call?n=100000&ms=50") } }
    heads = connections.map { |connection| connection.read_some[%r{\AHTTP/1.1 (\d+)}, 1] }
    assert_equal({ "200" => 20, "503" => 180 }, heads.tally)
    took = timings(20) { assert_equal "hello", @server.get("/hello").body }
    assert_operator percentile(took, 0.9), :<, 1
  end

  def test_clients_that_read_nothing_take_little_memory_and_are_closed
    start("--send-timeout", "3s", threads: 2)
    before = @server.memory_bytes
    peak = @server.peak_memory_during do
      80.times { open_stream("/flood") }
      assert_equal "hello", @server.get("/hello").body
      wait_for("their end", within: 20) { state["closed"] == 80 && streaming.zero? }
    end
    assert_operator (peak - before) / 80, :<, 512 * 1024
  end

  def test_files_and_threads_are_given_back
    start(threads: 2)
    @server.get("/hello")
    before = held
    streams = %w[each call partial].flat_map { |kind| Array.new(40) { open_stream("/#{kind}?n=25&ms=50") } }
    streams.each(&:first)
    assert_operator held.first, :>, before.first + 200
    streams.each_slice(2) do |left, read|
      left.close
      assert read.rest.last
      read.close
    end
    # A connection that has just closed may count for a moment.
    wait_for("all to be as it was", within: 20) { held.zip(before).all? { |now, at_first| now <= at_first + 1 } }
  end

  # Then an answer keeps its thread.
  def test_a_worker_that_has_no_more_files
    start(threads: 2)
    @server.get("/no_files")
    stream = open_stream("/each?n=20&ms=50")
    assert_equal "line 0\n", stream.first
    wait_for("the log") { @server.log.include?("a streaming response keeps its thread") }
    assert_equal "hello", @server.get("/hello").body
    assert_equal [REST, true], stream.rest
    @server.get("/files")
    stream = open_stream("/each?n=20&ms=50")
    wait_for("it to leave") { streaming == 1 }
    assert_equal [LINES, true], stream.whole
  end

  # The application need not be thread-safe.
  def test_with_one_thread_a_stream_keeps_it
    start(threads: 1)
    stream = open_stream("/call?n=20&ms=25")
    stream.first
    assert_equal "hello", @server.get("/hello").body
    assert_equal 1, state["whole"]
    assert_equal [REST, true], stream.rest
  end

  # What an application writes to its sockets concerns the answers of these sockets alone.
  def test_garbage_cuts_off_its_own_stream
    start(threads: 2)
    streams = Array.new(3) { open_stream("/each?n=20&ms=100") }
    streams.each(&:first)
    wait_for("them to leave") { streaming == 3 }
    assert_equal "done", @server.get("/garbage").body
    later = open_stream("/each?n=20&ms=30")
    assert_equal [false], streams.map { |stream| stream.rest.last }.uniq
    assert_equal [REST, true], later.rest
    assert_includes @server.log, "is not of Highball's protocol"
  end

  def test_a_killed_worker_cuts_its_streams_off
    start(threads: 2)
    streams = Array.new(20) { open_stream("/call?n=1000&ms=50") }
    streams.each(&:first)
    HighballServer.kill(state["pid"])
    streams.each { |stream| refute stream.rest.last, "cut off, and not complete" }
    assert_equal "hello", @server.get("/hello").body
  end

  def test_streams_end_with_the_server
    start("--drain-timeout", "1s", threads: 2)
    streams = %w[/call?n=1000&ms=50 /each?n=1000&ms=50 /silent].flat_map { |path| Array.new(5) { open_stream(path) } }
    short = open_stream("/each?n=20&ms=25")
    [*streams, short].each(&:first)
    HighballServer.kill(@server.pid, "TERM")
    assert_equal [REST, true], short.rest
    streams.each { |stream| refute stream.rest.last }
    wait_for("the server to end") { !@server.running? }
  end

  def test_streams_go_on_during_a_restart
    start("--drain-timeout", "10s", threads: 2)
    streams = Array.new(10) { open_stream("/call?n=20&ms=100") }
    streams.each(&:first)
    before = state["pid"]
    HighballServer.kill(@server.pid, "USR1")
    wait_for("the new version") { state["pid"] != before }
    streams.each { |stream| assert_equal [REST, true], stream.rest }
  end

  private

  def start(*options, **settings)
    @server = serve(folder_with("config.ru" => StreamApp::CONFIG), *options, **settings)
  end

  def state = JSON.parse(@server.get("/state").body).tap { |state| state.default = 0 }

  # Answers that have left their places.
  def streaming = @server.status["workers"].sum { |worker| worker["streams"] }

  # Open files of the server's process and of its worker, and threads of that.
  def held
    [@server.open_files, ProcessFacts.open_file_count(@server.worker_pids.first), state["threads"]]
  end

  def open_stream(path) = OpenStream.of(@server, path)
end
