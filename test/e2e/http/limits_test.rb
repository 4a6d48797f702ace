# frozen_string_literal: true

require_relative "../../support/e2e_test"

# Everything has a limit, and each limit its status.
class LimitsTest < E2ETest
  def test_body_too_large_by_length_and_in_chunks
    server = serve("probe", "--max-body", "1000")
    assert_equal 200, server.request("POST", "/echo", {}, "x" * 1000).status
    assert_equal 413, server.request("POST", "/echo", {}, "x" * 1001).status
    chunk = "3e8\r\n#{'x' * 1000}\r\n"
    head = "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
    server.connect { |connection| assert_equal 200, connection.write("#{head}#{chunk}0\r\n\r\n").read_response.status }
    assert_equal [413], server.exchange("#{head}#{chunk}1\r\nx\r\n0\r\n\r\n").map(&:status)
    assert_equal 2, JSON.parse(server.get("/count?targets=1").body)["targets"].count("POST /echo")
  end

  # The client reads nothing before all that it has to say is on its way, many times what the kernel holds for it.
  def test_a_refusal_in_the_middle_of_an_upload_reaches_the_client
    server = serve("probe", "--max-body", "1MiB")
    size = 64 * 1024 * 1024
    server.connect do |connection|
      connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: #{size}\r\n\r\n")
      (size / 65_536).times { connection.write("x" * 65_536) }
      assert_equal 413, connection.read_response.status
    end
  end

  def test_the_limit_on_open_files_is_raised_for_connections
    most = Process.getrlimit(:NOFILE).last
    server = serve("probe", "--max-connections", "300", fds: { rlimit_nofile: [256, most] })
    assert_equal [1600, most].min, File.read("/proc/#{server.server_pid}/limits")[/^Max open files +(\d+)/, 1].to_i
    refute_includes server.log, "may open only"
  end

  # A new client is served in the place of an idle one.
  def test_fewer_open_files_than_connections
    server = serve("probe", "--max-connections", "300", fds: { rlimit_nofile: [200, 200] })
    assert_includes server.log, "max_connections is 300, but this process may open only 200 files"
    idle = Array.new(300) { server.connect }
    assert_equal 200, server.get("/").status
  ensure
    idle&.each(&:close)
  end

  def test_target_head_and_fields
    server = serve("probe", "--max-target", "300", "--max-head", "2k", "--max-fields", "10")
    assert_equal 200, server.get("/?#{'q' * 290}").status
    assert_equal 414, server.get("/?#{'q' * 300}").status
    assert_equal 200, server.get("/", { "X" => "a" * 1500 }).status
    assert_equal 431, server.get("/", { "X" => "a" * 2500 }).status
    assert_equal 431, server.get("/", Array.new(12) { |number| ["X-#{number}", "a"] }.to_h).status
  end

  def test_a_head_that_takes_too_long
    server = serve("probe", "--head-timeout", "300ms")
    server.connect do |connection|
      connection.write("GET / HTTP/1.1\r\nHost")
      assert_equal 408, connection.read_response.status
      assert_predicate connection, :ended?
    end
  end

  # Slowloris: a byte now and then must not keep the head alive.
  def test_a_head_that_trickles_in
    server = serve("probe", "--head-timeout", "500ms")
    server.connect do |connection|
      dripping = Thread.new do
        "GET / HTTP/1.1\r\nHost: test\r\nX: #{'a' * 1000}".each_char do |byte|
          connection.write(byte)
          sleep 0.02
        end
      rescue SystemCallError
        nil # closed, as it should be
      end
      began = Deadline.now
      assert_equal 408, connection.read_response.status
      assert_operator Deadline.now - began, :<, 5
    ensure
      dripping.kill.join
    end
  end

  def test_a_body_that_stops_coming
    server = serve("probe", "--body-timeout", "300ms")
    server.connect do |connection|
      connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nabc")
      assert_equal 408, connection.read_response.status
      assert_predicate connection, :ended?
    end
    assert_equal 0, JSON.parse(server.get("/count?targets=1").body)["targets"].count("POST /echo")
  end

  # A byte now and then keeps no body alive.
  def test_a_body_that_trickles_in
    server = serve("probe", "--body-timeout", "1s", "--min-body-rate", "1000")
    server.connect do |connection|
      connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
      dripping = Thread.new do
        loop do
          connection.socket.write("1\r\nx\r\n")
          sleep 0.02
        end
      rescue SystemCallError, IOError
        nil # closed, as it should be
      end
      assert_equal 408, connection.read_response.status
    ensure
      dripping&.kill
    end
  end

  def test_an_idle_connection_is_closed_without_an_answer
    server = serve("probe", "--idle-timeout", "300ms")
    server.connect { |connection| assert_predicate connection, :ended? }
    server.connect do |connection|
      connection.get("/")
      assert_predicate connection, :ended?
    end
  end

  def test_a_client_that_takes_nothing_is_cut_off_and_its_worker_freed
    server = serve("probe", "--send-timeout", "500ms", threads: 1)
    server.connect do |connection|
      connection.send_request("GET", "/download?bytes=100000000")
      assert_equal 200, server.get("/", within: 20).status
      assert_equal 1, JSON.parse(server.get("/count").body)["closed"]
    end
  end

  def test_an_app_that_takes_too_long_is_answered_504
    server = serve("probe", "--request-timeout", "300ms", threads: 2)
    server.connect do |connection|
      began = Deadline.now
      assert_equal 504, connection.get("/sleep?ms=3000").status
      assert_operator Deadline.now - began, :<, 2.5
    end
    assert_equal 200, server.get("/").status
  end

  def test_a_full_queue_is_answered_503_at_once_and_the_others_are_served
    server = serve("probe", "--max-queue", "5", workers: 1, threads: 1)
    answers = concurrently(30) { server.get("/sleep?ms=200", within: 30) }
    shed, served = answers.partition { |answer| answer.status == 503 }
    assert_includes 5..12, served.length
    assert_equal [200], served.map(&:status).uniq
    shed.each { |answer| assert_match(/\A[1-9]\d*\z/, answer["retry-after"]) }
    assert_equal 200, server.get("/").status
  end

  def test_a_request_whose_client_has_left_the_queue_never_reaches_ruby
    server = serve("probe", workers: 1, threads: 1)
    server.connect do |busy|
      busy.send_request("GET", "/sleep?ms=1000")
      10.times do
        server.connect { |connection| connection.send_request("GET", "/echo?left") }
      end
      assert_equal 200, busy.read_response.status
    end
    left = JSON.parse(server.get("/count?targets=1").body)["targets"].count("GET /echo")
    # One may already be in the ring when its client disconnects.
    assert_operator left, :<=, 2
  end

  def test_header_fields_that_are_too_large_are_named_in_the_log
    large = "run ->(_) { [200, { 'x-small' => 'a', 'x-large' => 'b' * 70_000 }, ['']] }"
    server = serve(folder_with("config.ru" => large), ready: nil)
    assert_equal 500, server.get("/").status
    wait_for("the name") { server.log.match?(/fields take 70\d+ bytes, and no more than \d+ can be sent.*x-large/) }
  end

  # Several times what fits into a pipe. The server logs each of these answers, and waits for no reader.
  def test_a_log_that_is_not_read_holds_nothing_up
    bad = "run ->(env) { [200, env['PATH_INFO'] == '/' ? {} : { 'transfer-encoding' => 'gzip' }, ['ok']] }"
    reader, writer = IO.pipe
    server = serve(folder_with("config.ru" => bad), bind: File.join(folder_with, "s"), fds: { %i[out err] => writer })
    writer.close
    2000.times { assert_equal 502, server.get("/bad").status }
    assert_equal 200, server.get("/").status
    log = +""
    wait_for("all lines", within: 60) do
      log << reader.read_nonblock(MIB, exception: false).to_s
      log.scan("answer cannot be sent").length == 2000
    end
  ensure
    reader&.close
  end

  def test_at_the_limit_the_connection_that_has_been_idle_the_longest_gives_way
    server = serve("probe", "--max-connections", "5")
    open = Array.new(5) { server.connect.tap { |connection| connection.get("/") } }
    new = server.connect
    assert_equal 200, new.get("/").status
    assert open.first.socket.wait_readable(10), "the first connection is still open"
    assert_predicate open.first.socket, :eof?
    [*open.drop(1), new].each { |connection| assert_equal 200, connection.get("/").status }
  ensure
    [*open, new].compact.each(&:close)
  end

  def test_a_large_head_within_the_limits_arrives_whole
    server = serve("probe")
    fields = Array.new(60) { |number| ["X-Field-#{number}", "v" * 900] }.to_h
    seen = JSON.parse(server.get("/echo", fields).body)["env"]
    fields.each { |name, value| assert_equal value, seen["HTTP_#{name.upcase.tr('-', '_')}"] }
  end
end
