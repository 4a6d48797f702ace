# frozen_string_literal: true

# marks: debian13

require_relative "../../support/e2e_test"

# Connections that the application takes over (Rack SPEC, "Hijacking").
class HijackTest < E2ETest
  BOOTS_WITHIN = 150 # seconds, on a busy machine
  UPGRADE = "GET /hijack HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

  def setup
    super
    @server = serve("probe")
  end

  def test_full_hijack_speaks_in_both_directions
    @server.connect do |connection|
      assert_equal 101, connection.write(UPGRADE).read_response.status
      100.times do |number|
        connection.write("line #{number}\n")
        assert_equal "echo line #{number}\n", connection.read_bytes("echo line #{number}\n".bytesize)
      end
      connection.socket.close_write
      assert_predicate connection, :ended?
    end
  end

  def test_bytes_that_came_right_behind_the_request_are_not_lost
    @server.connect do |connection|
      connection.write("#{UPGRADE}early\n")
      assert_equal 101, connection.read_response.status
      assert_equal "echo early\n", connection.read_bytes(11)
    end
  end

  def test_partial_hijack_follows_the_head
    @server.connect do |connection|
      connection.write("GET /hijack-partial HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\nhi\n")
      connection.socket.close_write
      answer = connection.read_response
      assert_equal [200, "first\necho hi\n"], [answer.status, answer.body]
      assert_empty(answer.fields.select { |name, _| name.start_with?("rack.") })
    end
  end

  # An application that fails after it has taken the connection over does not keep it open.
  def test_an_exception_after_a_hijack_closes_the_connection
    @server = serve(folder_with("config.ru" => <<~RUBY))
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/full"
          env["rack.hijack"].call
          raise "no luck"
        when "/partial" then [200, { "rack.hijack" => ->(_io) { raise "no luck" } }, []]
        else [200, {}, [Dir.children("/proc/self/fd").length.to_s]]
        end
      end)
    RUBY
    before = @server.get("/").body.to_i
    %w[/full /partial].each do |path|
      20.times do
        @server.connect do |connection|
          connection.send_request("GET", path)
          connection.read_to_end
        end
      end
    end
    assert_operator @server.get("/").body.to_i, :<, before + 20
    wait_for("a line for each") { @server.log.scan("RuntimeError: no luck").length == 40 }
  end

  def test_much_data_passes_in_both_directions_at_once
    line = "#{'x' * 9_999}\n"
    @server.connect do |connection|
      connection.write(UPGRADE).read_response
      writer = Thread.new { 500.times { connection.socket.write(line) } }
      500.times { assert_equal "echo #{line}", connection.read_bytes(line.bytesize + 5) }
      writer.join
    end
  end

  def test_hijacked_connections_do_not_keep_threads
    open = Array.new(20) { @server.connect.tap { |connection| connection.write(UPGRADE).read_response } }
    assert_equal "probe\n", @server.get("/").body
    open.each { |connection| assert_equal "echo still here\n", connection.write("still here\n").read_bytes(16) }
  ensure
    open.each(&:close)
  end

  # A peer whose machine is gone would keep its place for ever.
  def test_the_kernel_looks_whether_their_clients_are_there
    @server.connect do |connection|
      assert_equal 101, connection.write(UPGRADE).read_response.status
      port = connection.socket.local_address.ip_port
      wait_for("a keepalive timer") { timer_of_connection_from(port) == "02" }
    end
  end

  def test_closed_ones_are_forgotten
    @server.connect { |connection| connection.write(UPGRADE).read_response }
    before = open_files
    20.times { @server.connect { |connection| connection.write(UPGRADE).read_response } }
    wait_for("close of hijacked connections") { open_files <= before + 2 }
  end

  def test_a_drain_waits_for_them_until_its_time_is_over
    server = serve("probe", "--drain-timeout", "1s")
    server.connect do |connection|
      connection.write(UPGRADE).read_response
      server.signal("TERM")
      connection.write("during the drain\n")
      assert_equal "echo during the drain\n", connection.read_bytes(22)
      began = Deadline.now
      server.wait
      assert_operator Deadline.now - began, :<, 10
    end
  end

  def test_one_whose_worker_is_replaced_has_time_to_end
    server = serve("probe", "--hijacked-drain-timeout", "2s")
    server.connect do |connection|
      connection.write(UPGRADE).read_response
      server.signal("USR1")
      wait_for("the new worker") { server.status["workers"].any? { |worker| worker["state"] == "retiring" } }
      connection.write("at the end\n")
      assert_equal "echo at the end\n", connection.read_bytes(16)
      assert_predicate connection, :ended?
    end
    wait_for("the end of the old worker") { server.status["workers"].length == 1 }
    refute_match(/took too long|died/, server.log)
  end

  # --- WebSockets

  RESTARTED = [0x88, 2, 0x03, 0xf4].pack("C*") # a close frame with status 1012
  WEB_SOCKET = "Host: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  # Answers with the head of a WebSocket, and then with what it is sent.
  ECHO = <<~RUBY
    HEAD = "HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n"
    echo = lambda do |socket|
      Thread.new do
        loop { socket.write(socket.readpartial(1000)) }
      rescue SystemCallError, IOError
        socket.close
      end
    end
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/full"
        socket = env["rack.hijack"].call
        socket.write(HEAD)
        echo.call(socket)
        [-1, {}, []]
      when "/partial"
        [101, { "upgrade" => "websocket", "connection" => "Upgrade", "rack.hijack" => echo }, []]
      else
        [200, {}, ["ok"]]
      end
    end)
  RUBY

  def test_a_websocket_is_closed_as_one_when_its_worker_is_replaced
    server = serve(folder_with("config.ru" => ECHO), "--hijacked-drain-timeout", "1s")
    sockets = %w[/full /partial].map { |path| web_socket(server, path) }
    frame = "\x81\x02hi".b
    sockets.each { |socket| assert_equal frame, socket.write(frame).read_bytes(4) }
    half = web_socket(server, "/full").write("\x81\x05he")
    assert_equal "\x81\x05he".b, half.read_bytes(4)
    closed = web_socket(server, "/full").write("\x88\x02\x03\xe8".b)
    assert_equal "\x88\x02\x03\xe8".b, closed.read_bytes(4)
    server.signal("USR1")
    sockets.each { |socket| assert_equal RESTARTED, socket.read_to_end }
    [half, closed].each { |socket| assert_empty socket.read_to_end, "not within a frame, nor after the last" }
  end

  def test_a_websocket_is_closed_as_one_when_the_server_stops
    server = serve(folder_with("config.ru" => ECHO), "--hijacked-drain-timeout", "0s")
    socket = web_socket(server, "/full")
    server.signal("TERM")
    assert_equal RESTARTED, socket.read_to_end
  end

  def test_other_protocols_get_nothing_that_is_not_the_applications
    server = serve("probe", "--hijacked-drain-timeout", "0s")
    connection = server.connect.write(UPGRADE)
    assert_equal 101, connection.read_response.status
    server.signal("TERM")
    assert_empty connection.read_to_end
  end

  def test_action_cable_clients_are_told_of_a_restart
    options = ["--hijacked-drain-timeout", "0s", "--boot-timeout", "#{BOOTS_WITHIN}s"]
    server = serve(copy_of_example("blog"), *options, within: BOOTS_WITHIN)
    origin = "Origin: http://test\r\nSec-WebSocket-Protocol: actioncable-v1-json\r\n"
    socket = web_socket(server, "/cable", origin)
    welcome = socket.read_bytes(2)
    assert_equal 0x81, welcome.getbyte(0)
    assert_match(/welcome/, socket.read_bytes(welcome.getbyte(1)))
    # Without a restart, it would be sent pings for ever.
    highball("restart", *server.which, within: BOOTS_WITHIN)
    assert socket.read_to_end.end_with?(RESTARTED)
  end

  private

  def web_socket(server, path, fields = "")
    server.connect.write("GET #{path} HTTP/1.1\r\n#{fields}#{WEB_SOCKET}".b).tap do |socket|
      assert_equal 101, socket.read_response.status
    end
  end

  # Of the server's end, as proc(5) has it: 02 is keepalive.
  def timer_of_connection_from(port)
    line = File.readlines("/proc/net/tcp").map(&:split).find { |fields| fields[2].end_with?(format(":%04X", port)) }
    line && line[5].split(":").first
  end

  def open_files
    @server.pids.sum { |pid| ProcessFacts.open_file_count(pid) }
  end
end
