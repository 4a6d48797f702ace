# frozen_string_literal: true

require_relative "../../support/tls_test_case"
require_relative "../../support/agent_check"

# In a life without faults, the log has no warning and no error: what is logged as one deserves that someone looks.
class NormalLifeTest < TlsTestCase
  include AgentCheck

  HELLO = { "tls" => "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03".b, "ssl2" => "\x80\x2e\x01\x00\x02".b,
            "http" => "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "newline" => "\r\n", "line" => "\n" }.freeze

  def setup
    super
    @app = folder_with("config.ru" => "run ->(env) { [200, {}, [env['PATH_INFO']]] }\n", "tmp/x" => "")
    @server = serve_tls(@app, "--admin", "127.0.0.1:0", *agent, workers: 2)
  end

  def test_checks_and_scans
    ports.each do |port|
      3.times { TCPSocket.new("127.0.0.1", port).close }
      3.times { reset_connection(TCPSocket.new("127.0.0.1", port)) }
      HELLO.each_value { |bytes| TCPSocket.open("127.0.0.1", port) { |socket| socket.write(bytes) } }
      TCPSocket.open("127.0.0.1", port) { |socket| read_to_end(socket.tap(&:close_write)) }
    end
    abort_handshakes
    3.times { UNIXSocket.new(control).close }
    UNIXSocket.open(control) { |socket| socket.write('{"comm') }
    UNIXSocket.open(control) { |socket| socket.write("{\"command\":\"status\"}\n") }
    UNIXSocket.open(control) { |socket| read_to_end(socket.tap(&:close_write)) }
    assert_equal 200, @server.get("/").status
    assert_match(/\Aup ready \d+%\z/, ask_agent)
    assert_quiet
  end

  def test_clients_that_leave
    @server.connect { |client| client.write("GET / HT") }
    @server.connect { |client| client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1") }
    @server.connect { |client| client.get("/") }
    @server.connect { |client| 3.times { client.send_request("GET", "/") } }
    assert_equal 400, @server.exchange("GET /\x00 HTTP/1.1\r\n\r\n").first.status
    assert_quiet
  end

  def test_operations
    command_output @server, "status"
    command_output @server, "status", "--json"
    command_output @server, "memory"
    command_output @server, "restart"
    command_output @server, "refork"
    server_serves
    @server.signal("HUP")
    @server.signal("USR1")
    server_serves
    FileUtils.touch(File.join(@app, "tmp/restart.txt"))
    wait_for("the restart", within: 60) { @server.status["generation"] == 3 }
    2.times do
      output = command_output(@server, "upgrade")
      assert_match(/a new process serves/, output)
      server_serves
    end
    @server.stop
    assert_quiet
  end

  # A command that is asked as an old process ends does not keep it waiting.
  def test_commands_during_hot_restarts
    while_servers_are_asked do
      [1, 2].each do |times|
        command_output(@server, "upgrade")
        wait_for("the old process to end") { @server.log.scan("finished the remaining requests").length == times }
      end
    end
    @server.stop
    assert_quiet
  end

  private

  def while_servers_are_asked
    asking = true
    askers = Array.new(4) { Thread.new { ask_all_servers while asking } }
    yield
  ensure
    asking = false
    askers.each(&:join)
  end

  def ask_all_servers
    Dir[File.join(HighballServer::CONTROL, "*.sock")].each do |path|
      UNIXSocket.open(path) { |socket| socket.write("{\"command\":\"status\"}\n") && socket.read }
    rescue SystemCallError
      nil # it has ended
    end
  end

  def ports
    @ports ||= [@server.port, tls_port(@server), @server.status["admin"].fetch(0)[/\d+\z/].to_i, agent_port]
  end

  def control
    named = "#{HighballServer::CONTROL}/#{@server.status['pid']}.sock"
    File.socket?(named) ? named : Dir["#{HighballServer::CONTROL}/*.sock"].fetch(0)
  end

  def server_serves = assert_equal(200, @server.get("/").status)

  # Clients that do not like the certificate, the versions or the protocols.
  def abort_handshakes
    assert_raises(OpenSSL::SSL::SSLError) { tls_socket(ports[1], host: "other.test") }
    old = OpenSSL::SSL::TLS1_1_VERSION
    assert_raises(OpenSSL::SSL::SSLError) { tls_socket(ports[1], verify: false, min: old, max: old) }
    assert_raises(OpenSSL::SSL::SSLError) { tls_socket(ports[1], verify: false, alpn: %w[smtp]) }
    tls_socket(ports[1]).close
  end

  # Whatever the other end does.
  def read_to_end(socket)
    socket.read
  rescue Errno::ECONNRESET
    nil
  end

  def assert_quiet
    server_serves if @server.running?
    faults = @server.log.lines.grep(/\b(WARN|ERROR)\b/)
    assert_empty faults - of_root
  end

  # Started as root without `user`, a server warns of that.
  def of_root = @server.log.lines.grep(/WARN .*\broot\b/)
end
