# frozen_string_literal: true

require_relative "../../support/http2_test_case"

# Clients that keep to the letter of HTTP/2 to cost the server more than themselves, and some that do not keep to it.
# What they cost is bounded, and other clients are served.
class HostileHttp2Test < Http2TestCase
  # The buffers of `OPTIONS`, and what 200 requests cost beside them: about 43 MiB. What they ask for would be 200.
  MAY_GROW = 64 * MIB
  OPTIONS = %w[--head-timeout 2s --send-timeout 2s --idle-timeout 5s --drain-timeout 1s --max-buffers 16m].freeze
  FRAMES = 20_000
  GONE = [Errno::EPIPE, Errno::ECONNRESET, EOFError, ClientConnection::TimedOut].freeze

  def setup
    super
    @server = serve_http2("probe", *OPTIONS)
    @pid = @server.server_pid
    http2 { |client| client.send_request(1, "GET", "/") && client.answer(1) }
    @memory = resident_bytes
  end

  def teardown
    if passed?
      assert_equal [@pid, 200], [@server.server_pid, @server.get("/").status]
      assert_operator resident_bytes - @memory, :<, MAY_GROW
    end
    super
  end

  # CVE-2023-44487.
  def test_requests_that_are_reset_at_once
    requests = Array.new(FRAMES) { |number| request(1 + (2 * number)) + reset(1 + (2 * number)) }
    http2 do |client|
      send_all(client, requests)
      assert_equal Http2Client::ENHANCE_YOUR_CALM, client.read_to_end
    end
    assert_operator targets(@server).length, :<, FRAMES / 4
  end

  # The same in small groups, so that none waits to be accepted when it is reset.
  def test_requests_that_are_reset_one_after_the_other
    http2 do |client|
      code = assert_cut_off(client) do |number|
        client.write(request(1 + (2 * number), path: "/sleep?ms=10000"))
        client.write_frame(Http2Client::PING, 0, 0, "12345678")
        client.read_until { client.pongs > number }
        client.write(reset(1 + (2 * number)))
      end
      assert_equal Http2Client::ENHANCE_YOUR_CALM, code
    end
  end

  # Requests that the server itself has to reset: "MadeYouReset", CVE-2025-8671.
  def test_requests_that_the_server_has_to_reset
    http2 do |client|
      code = assert_cut_off(client) do |number|
        stream = 1 + (2 * number)
        client.write(request(stream, path: "/sleep?ms=1"))
        client.give(stream, 0x7fff_ffff) # beyond the largest window
      end
      assert_equal Http2Client::ENHANCE_YOUR_CALM, code
    end
  end

  # CVE-2024-27316 and others.
  def test_a_head_that_never_ends
    http2 do |client|
      client.write_frame(Http2Client::HEADERS, Http2Client::END_STREAM, 1, client.head("GET", "/"))
      code = assert_cut_off(client) do |number|
        client.write_frame(Http2Client::CONTINUATION, 0, 1, client.field_bytes("x-#{number}", "x" * 1000))
      end
      assert_includes [nil, Http2Client::PROTOCOL_ERROR, Http2Client::ENHANCE_YOUR_CALM], code
    end
  end

  # Slow enough not to be cut off for the number of its frames, and beside a request that is served.
  def test_a_head_that_arrives_slowly
    [0, 1].each do |others|
      http2 do |client|
        others.times { client.write(request(1, path: "/sleep?ms=60000")) }
        client.write_frame(Http2Client::HEADERS, Http2Client::END_STREAM, 3, client.head("GET", "/"))
        drip = Thread.new do
          loop do
            sleep 0.1
            client.write_frame(Http2Client::CONTINUATION, 0, 3, client.field_bytes("x", "x"))
          end
        rescue *GONE
          nil
        end
        assert_equal Http2Client::ENHANCE_YOUR_CALM, client.read_to_end, "beside #{others}"
      ensure
        drip&.kill&.join
      end
    end
    assert_drips_are_cut_off(client_frames: [Http2Client::PING, Http2Client::SETTINGS])
  end

  def test_a_head_of_empty_frames_that_never_ends
    http2 do |client|
      client.write_frame(Http2Client::HEADERS, Http2Client::END_STREAM, 1, client.head("GET", "/"))
      assert_cut_off(client) { client.write(client.frame(Http2Client::CONTINUATION, 0, 1) * 100) }
    end
  end

  def test_a_hundred_thousand_fields
    http2 do |client|
      fields = client.head("GET", "/") + Array.new(100_000) { |number| client.field_bytes("x-#{number}", "") }.join
      pieces = fields.scan(/.{1,16000}/mn)
      begin
        client.write_frame(Http2Client::HEADERS, Http2Client::END_STREAM, 1, pieces.shift)
        pieces.each { |piece| client.write_frame(Http2Client::CONTINUATION, 0, 1, piece) }
        client.write_frame(Http2Client::CONTINUATION, Http2Client::END_HEADERS, 1)
      rescue *GONE
        nil
      end
      client.read_to_end
      assert client.goaway || client.part(1).status == 431, client.part(1).inspect
    end
    # As many as fit into the frames, but more than are allowed.
    http2 do |client|
      assert_equal 431, client.ask(1, "GET", "/", (1..300).to_h { |number| ["x-#{number}", ""] }).status
      assert_equal 200, client.ask(3, "GET", "/").status
    end
  end

  # A field of 4,000 bytes that is sent once, and a thousand times by its number.
  def test_a_bomb_of_indexed_fields
    http2 do |client|
      kept = "\x40".b + client.field_bytes("x-bomb", "x" * 4000)[1..]
      http2 do |other|
        other.send_request(1, "GET", "/")
        client.write_frame(Http2Client::HEADERS, 5, 1, client.head("GET", "/") + kept + ("\xBE".b * 4000))
        client.read_until { client.part(1).over? || client.goaway }
        assert_includes [431, nil], client.part(1).status
        assert_equal 200, other.answer(1).status
      end
    rescue *GONE
      nil # the connection is over
    end
  end

  # Each is to be confirmed, and no confirmation is read.
  def test_floods_that_ask_for_replies
    questions = [[Http2Client::PING, "12345678"], [Http2Client::SETTINGS, [4, 65_535].pack("nN")]]
    questions.each do |type, payload|
      http2 do |client|
        assert_cut_off(client) { client.write(client.frame(type, 0, 0, payload) * 1000, within: 1) }
      end
    end
  end

  def test_streams_whose_windows_stay_shut
    clients = Array.new(10) { http2(@server, { Http2Client::INITIAL_WINDOW_SIZE => 0 }) }
    clients.each do |client|
      20.times { |number| client.write(request(1 + (2 * number), path: "/download?bytes=300000")) }
    end
    assert_equal 200, @server.get("/").status
    clients.each { |client| assert_equal 2, client.answer(1).reset }
  ensure
    clients&.each(&:close)
  end

  # The memory of a server is no client's to take, however much of it there is: by default, an eighth may be buffers.
  def test_many_streams_of_few_connections
    server = serve_http2("probe", "--send-timeout", "20s")
    http2(server) { |client| client.send_request(1, "GET", "/") && client.answer(1) }
    before = resident_bytes(server)
    clients = Array.new(5) { http2(server, { Http2Client::INITIAL_WINDOW_SIZE => 0 }) }
    clients.each do |client|
      100.times { |number| client.write(request(1 + (2 * number), path: "/download?bytes=300000")) }
    end
    wait_for("the answers") { targets(server).grep(/download/).length == 500 }
    clients.each { |client| client.read_until { client.part(199).status } }
    assert_operator (resident_bytes(server) - before) / clients.length, :<, 8 * MIB
    refute_includes server.log, "--max-buffers"
  ensure
    clients&.each(&:close)
  end

  # A large head is sent once, and a hundred times by the numbers of its fields.
  def test_large_heads_of_many_streams
    http2 do |client|
      kept = "\x40".b + client.field_bytes("x-large", "x" * 3900)[1..]
      100.times do |number|
        fields = client.head("GET", "/sleep?ms=1000") + (number.zero? ? kept : "") + ("\xBE".b * 15)
        client.write_frame(Http2Client::HEADERS, 5, 1 + (2 * number), fields)
      end
      answers = Array.new(100) { |number| client.answer(1 + (2 * number)) }
      assert_equal [200, Http2Client::REFUSED_STREAM], answers.map { |one| one.status || one.reset }.uniq.sort.reverse
      assert_includes(10..25, answers.count { |one| one.status == 200 })
      assert_equal 200, client.ask(201, "GET", "/").status
    end
  end

  # The windows are wide open, and the socket is not read.
  def test_connections_that_are_not_read
    clients = Array.new(10) { http2(@server, { Http2Client::INITIAL_WINDOW_SIZE => 0x7fff_ffff }) }
    clients.each do |client|
      client.give(0, 0x7fff_0000)
      20.times { |number| client.write(request(1 + (2 * number), path: "/download?bytes=1000000")) }
    end
    wait_for("the server to be asked") { targets(@server).length > 200 }
    assert_operator resident_bytes - @memory, :<, MAY_GROW
  ensure
    clients&.each(&:close)
  end

  def test_empty_frames_of_a_body
    http2 do |client|
      client.send_request(1, "POST", "/upload", {}, is_complete: false)
      assert_cut_off(client) { client.write(client.frame(Http2Client::DATA, 0, 1) * 1000) }
    end
  end

  def test_garbage
    random = Random.new(seed = Random.new_seed % 1_000_000)
    200.times do
      http2 do |client|
        client.write(client.frame(random.rand(12), random.rand(256), random.rand(4), random.bytes(random.rand(100))))
        client.write_frame(Http2Client::DATA, 0, 0) # ends the connection
        client.read_to_end
      end
    rescue *GONE
      nil
    end
  rescue StandardError => e
    raise e, "seed #{seed}: #{e.message}"
  end

  def test_connections_that_begin_and_do_not_go_on
    starts = [Http2Client::PREFACE[0, 5], Http2Client::PREFACE, "#{Http2Client::PREFACE}\0\0\0"]
    sockets = starts.map { |start| HttpConnection.tcp(@server.port).write(start) }
    sockets.each { |socket| socket.read_to_end(within: 20) }
    assert_equal 200, @server.get("/").status
  ensure
    sockets&.each(&:close)
  end

  private

  # A part of any frame but of a body, on a connection that serves nothing.
  def assert_drips_are_cut_off(client_frames:)
    client_frames.each do |type|
      http2 do |client|
        client.write([0, 6, type, 0, 0].pack("CnCCN"))
        assert_equal Http2Client::ENHANCE_YOUR_CALM, client.read_to_end, "type #{type}"
      end
    end
  end

  def resident_bytes(server = @server)
    File.read("/proc/#{server.server_pid}/status")[/^VmRSS:\s+(\d+) kB/, 1].to_i * 1024
  end

  def request(stream, path: "/")
    @frames ||= Http2Client.allocate
    @frames.frame(Http2Client::HEADERS, 5, stream, @frames.head("GET", path))
  end

  def reset(stream) = @frames.frame(Http2Client::RST_STREAM, 0, stream, [Http2Client::CANCEL].pack("N"))

  def send_all(client, frames)
    frames.each_slice(100) { |some| client.write(some.join) }
  rescue *GONE
    nil
  end

  # The server ends the connection while the block is called with 0, 1…; the code of its GOAWAY.
  def assert_cut_off(client)
    FRAMES.times do |number|
      yield number
      client.glance
      return client.goaway.last if client.goaway
    rescue *GONE
      return client.read_to_end
    end
    flunk "#{FRAMES} times are not enough"
  end
end
