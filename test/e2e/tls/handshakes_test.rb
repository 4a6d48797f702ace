# frozen_string_literal: true

require_relative "../../support/tls_test_case"

# Clients that misuse the TLS handshake: others notice nothing.
class TlsHandshakesTest < TlsTestCase
  HALF = 1000 # handshakes

  def test_garbage
    server = serve_tls("probe")
    port = tls_port(server)
    ["\x16\x03\x01\xff\xff#{'x' * 70_000}", "\0" * 1000, "\x16\x03\x01\0\x05\x01\0\0\x01\0", Random.bytes(5000),
     "\x80\x2e\x01\0\x02"].each do |bytes|
      socket = Socket.tcp("127.0.0.1", port)
      client = ClientConnection.new(socket)
      begin
        client.write(bytes.b)
        socket.close_write
        socket.read
      rescue Errno::ECONNRESET, Errno::EPIPE
        # it was closed before all was written
      ensure
        client.close
      end
    end
    connect_tls(port) { |client| assert_equal 200, client.get("/").status }
    wait_for("the end of all connections") { server.status["connections"].zero? }
    assert_operator server.status.dig("tls", "failed_handshakes"), :>=, 4
  end

  def test_half_handshakes_time_out_and_hold_up_no_other
    server = serve_tls("probe", "--tls-handshake-timeout", "2s")
    port = tls_port(server)
    hello = client_hello
    allow_open_files(HALF * 2)
    half = Array.new(HALF) do |number|
      ClientConnection.tcp(port).tap { |client| client.write(hello[0, number.even? ? hello.length : number % 50]) }
    end
    connect_tls(port) { |client| assert_equal 200, client.get("/").status }
    half.each { |client| read_to_end(client) }
    tls = server.status["tls"]
    assert_equal [HALF, 0], tls.values_at("slow_handshakes", "refused_handshakes")
    wait_for("the end of all connections") { server.status["connections"].zero? }
  ensure
    half&.each(&:close)
  end

  def test_too_many_handshakes_are_turned_away
    rsa = certificate_for("localhost", key: OpenSSL::PKey::RSA.new(4096))
    server = serve_tls("probe", "--max-tls-handshakes", "1", pairs: [rsa])
    port = tls_port(server)
    hello = client_hello
    clients = Array.new(200) { ClientConnection.tcp(port) }
    clients.each { |client| client.write(hello) }
    wait_for("refusals") { server.status.dig("tls", "refused_handshakes").positive? }
    wait_for("room") { served?(port) }
    assert_match(/too many TLS handshakes are under way \(`max_tls_handshakes`\)/, server.log)
  ensure
    clients&.each(&:close)
  end

  # Others take the places of half handshakes where there is no room.
  def test_half_handshakes_at_the_limit_of_connections
    server = serve_tls("probe", "--max-connections", "20")
    port = tls_port(server)
    half = Array.new(60) { ClientConnection.tcp(port).tap { |client| client.write("\x16\x03".b) } }
    connect_tls(port) { |client| assert_equal 200, client.get("/").status }
  ensure
    half&.each(&:close)
  end

  private

  def allow_open_files(count)
    now, most = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, [now, [count, most].min].max, most)
  end

  def served?(port)
    connect_tls(port) { |client| client.get("/").status == 200 }
  rescue OpenSSL::SSL::SSLError, SystemCallError
    false
  end

  def read_to_end(client)
    client.socket.read
  rescue Errno::ECONNRESET
    # with what was not read
  end

  # The first message of a client.
  def client_hello
    ours, theirs = UNIXSocket.pair
    tls = OpenSSL::SSL::SSLSocket.new(ours, tls_context(verify: false))
    tls.hostname = "localhost"
    tls.connect_nonblock(exception: false)
    theirs.readpartial(65_536)
  ensure
    [ours, theirs].each { |socket| socket&.close }
  end
end
