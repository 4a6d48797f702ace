# frozen_string_literal: true

require_relative "../support/e2e_test"

# Connections that the application takes over (Rack SPEC, "Hijacking").
class HijackTest < E2ETest
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

  private

  def open_files
    @server.pids.sum { |pid| ProcessFacts.open_file_count(pid) }
  end
end
