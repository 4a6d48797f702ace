# frozen_string_literal: true

# marks: few (it measures how long answers take)

require_relative "../../support/e2e_test"
require_relative "../../support/agent_check"

# Health checks, agent checks and commands are answered at once, whatever others do where these are asked.
class SecondaryListenersTest < E2ETest
  include AgentCheck

  ANSWERED_WITHIN = 1 # seconds
  TRIES = 3 # the quickest counts: other processes may have the CPUs for a while
  MANY = 400

  # What each of many connections sends. None is answered, or its answer is not read.
  SILENT_OR_SLOW = {
    "nothing" => "",
    "a part of a request" => "GET /livez HTTP/1.1\r\nHost: lo",
    "a long head without its end" => "GET /livez HTTP/1.1\r\nX: #{'x' * 7000}",
    "requests whose answers it does not read" => "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
    "garbage" => "\x00\xff\x16\x03\x01".b * 100
  }.freeze

  def setup
    super
    @connections = []
    _, most = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, [most, 8192].min, most)
    @server = serve("probe", "--admin", "127.0.0.1:0", *agent)
    @admin_port = @server.status["admin"].fetch(0)[/\d+\z/].to_i
  end

  def teardown
    @connections.each(&:close)
    super
  end

  SILENT_OR_SLOW.each do |what, bytes|
    define_method("test_many_that_send_#{what.tr(' ', '_')}") do
      assert_live { flood(@admin_port, bytes) }
    end
  end

  # The connections that were there before end, so that they cannot be kept for later.
  def test_one_that_sends_nothing_ends_soon
    idle = connect(@admin_port)
    began = Deadline.now
    assert_equal "", idle.read
    assert_operator Deadline.now - began, :<, 5
  end

  def test_many_that_send_a_byte_now_and_then
    # The pause is for the other thread: this one never waits for anything, and would keep Ruby's lock.
    drip = -> { @connections.dup.each { |socket| send_to(socket, "G") } && sleep(0.01) }
    while_repeating(drip) { assert_live { flood(@admin_port, "G") } }
  end

  def test_many_that_end_their_side_at_once
    assert_live { flood(@admin_port, "GET /").each(&:close_write) }
  end

  def test_connections_that_come_and_are_reset_all_the_time
    while_repeating(-> { reset_connection(TCPSocket.new("127.0.0.1", @admin_port)) }) { assert_live }
  end

  def test_idle_connections_that_come_all_the_time
    come = lambda do
      connect(@admin_port)
      @connections.shift.close if @connections.length > MANY
    end
    while_repeating(come) { assert_live }
  end

  def test_each_address_has_its_own_places
    assert_live { flood(agent_port, "") }
    assert_agent_answers { flood(@admin_port, "") }
  end

  # A balancer that names no application sends nothing either.
  def test_agent_checks_beside_many_idle_connections
    come = lambda do
      connect(agent_port)
      @connections.shift.close if @connections.length > MANY
    end
    while_repeating(come) { assert_agent_answers }
  end

  # The newest dashboard is shown, and the place of the oldest is its.
  def test_dashboards_take_no_places_for_good
    follow = -> { 40.times { send_to(connect(@admin_port), "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") } }
    assert_live(&follow)
    answer = quickest(follow) { http(connect(@admin_port), "/events") }
    assert_match(%r{\AHTTP/1.1 200 }, answer)
  end

  def test_commands_beside_many_idle_connections
    pid = @server.status["pid"]
    ["", '{"comm', "x" * 900, "\x00" * 10].each do |bytes|
      answer = quickest(-> { MANY.times { send_to(command, bytes) } }) { ask_status }
      assert_equal pid, JSON.parse(answer)["pid"]
    end
    @connections.each(&:close).clear
    refute_match(/WARN.*control socket/, @server.log)
  end

  # Each takes seconds, and is no reason not to answer what takes less.
  def test_commands_beside_many_that_take_long
    pids = @server.worker_pids
    stop_processes(pids)
    ask_much = -> { 80.times { send_to(command, "{\"command\":\"memory\",\"gc\":true}\n") } }
    assert_equal "status", JSON.parse(quickest(ask_much) { ask_status })["type"]
  ensure
    pids&.each { |pid| HighballServer.kill(pid, "CONT") }
  end

  private

  def connect(port) = TCPSocket.new("127.0.0.1", port).tap { |socket| @connections << socket }

  def command
    @control ||= Dir["#{HighballServer::CONTROL}/*.sock"].fetch(0)
    UNIXSocket.new(@control).tap { |socket| @connections << socket }
  end

  def flood(port, bytes)
    Array.new(MANY) { connect(port).tap { |socket| send_to(socket, bytes) } }
  end

  # The server may have closed it already.
  def send_to(socket, bytes)
    socket.write_nonblock(bytes, exception: false)
  rescue Errno::ECONNRESET, Errno::EPIPE
    nil
  end

  def while_repeating(action)
    is_over = false
    attacker = Thread.new { action.call until is_over }
    attacker.report_on_exception = false
    yield
  ensure
    is_over = true
    attacker.join
  end

  # `before`: begins an attack.
  def assert_live(&before)
    answer = quickest(before) { http(TCPSocket.new("127.0.0.1", @admin_port), "/livez") }
    assert_match(%r{\AHTTP/1.1 200 .*^live$}m, answer)
  end

  def assert_agent_answers(&before) = assert_equal("up ready 100%", quickest(before) { ask_agent })

  # What the socket sends, at least the first part.
  def http(socket, path)
    socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert socket.wait_readable(10), "no answer"
    path == "/events" ? socket.readpartial(4096) : socket.read
  ensure
    socket.close unless path == "/events"
  end

  def ask_status
    socket = command
    socket.write("{\"command\":\"status\"}\n")
    assert socket.wait_readable(10), "no answer"
    socket.gets.to_s
  end

  # The value of the block, of which the quickest of a few runs takes no more than a second.
  def quickest(before = nil)
    value = nil
    times = Array.new(TRIES) do
      before&.call
      began = Deadline.now
      value = yield
      Deadline.now - began
    end
    assert_operator times.min, :<, ANSWERED_WITHIN, "#{times}\n#{value}"
    value
  end
end
