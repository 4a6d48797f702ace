# frozen_string_literal: true

require_relative "../../support/gateway_test_case"

# Web servers, and clients that reach the addresses meant for these, that do not keep to FastCGI or LSAPI.
class HostileGatewaysTest < GatewayTestCase
  MAY_GROW = 16 * MIB
  COUNT = 10_000
  OPTIONS = ["--max-body", "1m", "--head-timeout", "1s", "--body-timeout", "1s", "--max-fields", "50",
             "--idle-timeout", "2s", "--max-head", "16k"].freeze
  BREACH = "a connection of a web server was closed: it"
  HTTP = "GET / HTTP/1.1\r\nHost: test\r\n\r\n"
  # A record of FastCGI: version, type, request, length of content, padding.
  RECORD = lambda { |type, content = "", id: 1, version: 1|
    [version, type, id, content.bytesize, 0, 0].pack("CCnnCC") + content.b
  }
  BEGIN_REQUEST = RECORD.call(1, "\0\1\1\0\0\0\0\0")
  # What is not of FastCGI, and what the log tells of it.
  BREACHES = {
    HTTP => "does not speak FastCGI",
    RECORD.call(1, "\0\1\1\0\0\0\0\0", version: 2) => "does not speak FastCGI",
    BEGIN_REQUEST + BEGIN_REQUEST => "begins a request twice",
    RECORD.call(1, "short") => "sends a malformed BEGIN_REQUEST",
    BEGIN_REQUEST + RECORD.call(6, "x") => "sends a record that only an application sends",
    BEGIN_REQUEST + RECORD.call(5, "x") => "sends a body before the end of the variables",
    BEGIN_REQUEST + RECORD.call(4, "\x09\x09ab") + RECORD.call(4) => "sends a variable that is cut off"
  }.freeze
  BREACHES_OF_LSAPI = {
    HTTP => "does not speak LSAPI",
    "LS\x01\0#{[9].pack('l<')}\0" => "sends a BEGIN_REQUEST that is too short",
    "LS\x03\0#{[8].pack('l<')}" => "sends a packet that only an application sends"
  }.freeze

  def setup
    super
    @server = serve_all("probe", *OPTIONS)
    @pid = @server.server_pid
  end

  def teardown
    assert_well(@server, @pid) if passed?
    assert_empty(targets(@server).grep(/refused/)) if passed?
    super
  end

  def test_what_is_not_of_the_protocol
    { "fastcgi" => BREACHES, "lsapi" => BREACHES_OF_LSAPI }.each do |protocol, breaches|
      breaches.each do |bytes, why|
        raw(protocol, bytes) { |connection| assert_equal "", to_end(connection), why }
        assert_includes @server.log, "#{BREACH} #{why}"
      end
    end
  end

  def test_garbage
    random = Random.new(seed = Random.new_seed % 1_000_000)
    memory = resident_bytes(@server)
    CLIENTS.each_key do |protocol|
      concurrently(8) do
        100.times do
          raw(protocol, mangled(random)) { |connection| connection.socket.close_write && to_end(connection) }
        end
      end
    end
    assert_operator resident_bytes(@server) - memory, :<, MAY_GROW, "seed #{seed}"
  end

  # The connection ends when too many replies are not read, and no other suffers.
  def test_replies_that_are_not_read
    memory = resident_bytes(@server)
    question = RECORD.call(9, "\x0E\0FCGI_MAX_CONNS\x0D\0FCGI_MAX_REQS", id: 0)
    # Beside a request that is running, as well.
    [nil, BEGIN_REQUEST].each do |before|
      raw("fastcgi", before.to_s) do |connection|
        assert_raises(CgiConnection::TimedOut, Errno::EPIPE, Errno::ECONNRESET) do
          loop { connection.write(question * 1000, within: 2) }
        end
      end
    end
    assert_operator resident_bytes(@server) - memory, :<, MAY_GROW
    assert_includes @server.log, "#{BREACH} asks for much more than it reads"
    # A client that reads its answers gets all of them.
    gateway(@server, "fastcgi") do |connection|
      (COUNT / 100).times do
        connection.write(question * 100)
        100.times { assert_equal 10, connection.read_record.type }
      end
    end
  end

  # They bring a request no further, and keep no idle connection: their time goes on.
  def test_empty_records_for_ever
    kinds = [RECORD.call(2, "", id: 9), RECORD.call(8), RECORD.call(5, "", id: 7)]
    begins = [->(_) {}, ->(connection) { connection.begin_request },
              ->(connection) { begin_upload(connection, "fastcgi", 10) }]
    pairs = kinds.product(begins)
    concurrently(pairs.length) do |number|
      empty, begin_one = pairs[number]
      gateway(@server, "fastcgi") do |connection|
        begin_one.call(connection)
        assert_ended_by_time(connection, empty * 100)
      end
    end
  end

  def test_variables_at_the_limits
    with_each(@server) do |connection, protocol|
      assert_equal 200, connection.get("/", fields(48, 10)).status, protocol
      assert_equal 431, connection.get("/refused", fields(52, 10)).status, protocol
      long = gateway(@server, protocol) { |other| other.get("/refused", fields(2, 40_000)) }
      assert_equal 431, long.status, protocol
    end
    gateway(@server, "fastcgi") do |connection|
      connection.begin_request
      assert_ended_by_time(connection, RECORD.call(4, "x" * 60_000))
      assert_equal 431, connection.read_response.status
    end
  end

  def test_bodies_of_another_length_than_announced
    gateway(@server, "fastcgi") do |connection|
      connection.send_request("POST", "/refused", { "Content-Length" => 5 }, ["abc"])
      assert_equal "", to_end(connection)
    end
    gateway(@server, "fastcgi") do |connection|
      connection.send_request("POST", "/refused", { "Content-Length" => 5 }, ["abcdefgh"])
      assert_equal "", to_end(connection)
    end
    assert_includes @server.log, "ends a body before its length"
    assert_includes @server.log, "sends a body beyond its length"
    # What is beyond the length begins no request.
    gateway(@server, "lsapi") do |connection|
      connection.begin_request("POST", "/echo", {}, 3)
      connection.write_body("abcdef")
      assert_raises(EOFError, Errno::ECONNRESET, CgiConnection::BadAnswer) do
        connection.read_response || raise(EOFError)
      end
    end
  end

  def test_slow_heads_and_bodies
    CLIENTS.each_key do |protocol|
      gateway(@server, protocol) do |connection|
        begin_upload(connection, protocol, 10)
        assert_equal 408, connection.read_response.status, protocol
        assert_predicate connection, :ended?
      end
      raw(protocol, head_of(protocol)) { |connection| refute_empty to_end(connection) }
    end
  end

  # Neither does the client of the request before lend its address.
  def test_addresses_that_are_none
    with_each(@server) do |connection, protocol|
      ["", "unix:", "localhost", "127.0.0.1\0", "999.1.1.1", "::ffff:192.0.2.1", "x" * 5000].each do |address|
        params = { "REMOTE_ADDR" => address, "SERVER_PORT" => address, "HTTPS" => nil }
        seen = JSON.parse(connection.get("/echo", params: params).body)["env"]
        due = address.end_with?("192.0.2.1") ? "192.0.2.1" : "127.0.0.1"
        assert_equal [due, "80"], seen.values_at("REMOTE_ADDR", "SERVER_PORT"), "#{protocol}: #{address}"
        assert_equal 200, connection.get("/", params: { "REMOTE_ADDR" => "192.0.2.9", "HTTPS" => "on" }).status
      end
    end
  end

  private

  # A connection on which these bytes were written.
  def raw(protocol, bytes)
    gateway(@server, protocol) { |connection| yield connection.write(bytes) }
  end

  # All bytes until the server ends the connection.
  def to_end(connection)
    bytes = +"".b
    wait_for("the end of the connection", within: 20) do
      part = connection.socket.read_nonblock(65_536, exception: false)
      bytes << part if part.is_a?(String)
      part.nil?
    rescue Errno::ECONNRESET
      true
    end
    bytes
  end

  # Records at random, most of them with a right header.
  def mangled(random)
    Array.new(random.rand(1..20)) do
      content = random.bytes(random.rand(0..300))
      case random.rand(4)
      when 0 then content
      when 1 then "LS#{[random.rand(0..9), random.rand(2), random.rand(0..400)].pack('CCl<')}".b + content
      else RECORD.call(random.rand(0..12), content, id: random.rand(0..2))
      end
    end.join
  end

  def begin_upload(connection, protocol, length)
    if protocol == "lsapi"
      connection.begin_request("POST", "/refused", {}, length)
    else
      connection.begin_request
      connection.write_params(connection.params_of("POST", "/refused", {}, length).compact)
    end
    connection.write_body("abc")
  end

  # The beginning of a head.
  def head_of(protocol)
    protocol == "lsapi" ? "LS\x01\0#{[500].pack('l<')}abc" : "#{BEGIN_REQUEST}\x01\x04\0\x01\0\x0A"
  end

  # What is written again and again leads to an answer, or to the end of the connection.
  def assert_ended_by_time(connection, bytes)
    wait_for("an answer, or the end", within: 20) do
      connection.write(bytes)
      connection.socket.wait_readable(0)
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # it has ended
  end

  def fields(count, bytes)
    Array.new(count - 1) { |number| ["X-#{number}", "v" * bytes] }.to_h
  end
end
