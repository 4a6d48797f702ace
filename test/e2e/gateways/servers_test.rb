# frozen_string_literal: true

# marks: long

require_relative "../../support/gateway_server_test_case"

# Visitors of nginx, lighttpd and Apache, which pass requests on over FastCGI as `highball config` configures them, get
# what they would get from Highball over HTTP.
class GatewayServersTest < GatewayServerTestCase
  UPLOAD = (LEVEL == "full" ? 1024 : 64) * MIB
  MOST_SECONDS = 300 # for an upload, on a busy machine
  MAY_GROW = 64 * MIB
  BLOCK = Random.new(3).bytes(MIB)
  VISITORS = 25
  FILES = { "public/large.bin" => Random.new(2).bytes(3 * MIB), "public/sub/index.html" => "sub" }.freeze
  # Fields that web servers set themselves, and those of one answer only.
  IGNORED = %w[date connection keep-alive transfer-encoding server content-length x-request-id x-runtime set-cookie vary
               accept-ranges].freeze
  REQUESTS = [
    ["GET", "/"], ["HEAD", "/"], ["GET", "/none?a=b%20c"], ["GET", "/%7Ea%2Fb//c"], ["POST", "/upload", "some words"],
    ["GET", "/many-headers"], ["GET", "/array"], ["GET", "/download?bytes=1000000"],
    ["GET", "/download?bytes=1000000&length=1"], ["HEAD", "/download?bytes=1000000&length=1"], ["GET", "/stream"],
    ["GET", "/early"], ["GET", "/status?code=204"],
    ["GET", "/status?code=201"], ["GET", "/status?code=404"], ["GET", "/status?code=503"], ["GET", "/raise"],
    ["GET", "/large.bin"], ["HEAD", "/large.bin"], ["GET", "/sub"], ["GET", "/sub/"]
  ].freeze

  # One Highball on two addresses of FastCGI, with each of the programs in front of each of them.
  PROGRAMS.each do |program, command|
    define_method("test_#{program}") do
      needs(command)
      server = serve_probe
      binds(server).each do |bind|
        web_server = in_front(program, command, bind)
        assert_same_answers(server, web_server)
        assert_grows_little(server) { uploads(web_server) }
        streams(server, web_server)
        visitors_at_once(web_server)
        a_visitor_leaves(server, web_server)
        cuts_off(web_server)
      end
      assert_equal 200, server.get("/").status
    end
  end

  private

  # Over TCP and a Unix socket, which the web servers' users may write to.
  def serve_probe
    folder = folder_with
    File.chmod(0o755, folder)
    socket = File.join(folder, "highball.sock")
    app = probe_with(FILES)
    server = serve(app, "-b", "fastcgi://127.0.0.1:0", "-b", "fastcgi+unix:#{socket}", "--max-body", "2g",
                   "--request-timeout", "#{MOST_SECONDS}s")
    File.chmod(0o777, socket)
    server
  end

  def assert_same_answers(server, web_server)
    # Apache ends connections after some errors.
    REQUESTS.each do |method, target, body|
      due = server.request(method, target, HOST, body)
      seen = web_server.connect { |visitor| visitor.request(method, target, HOST, body) }
      assert_equal comparable(due), comparable(seen), "#{method} #{target}"
    end
    web_server.connect { |visitor| revalidates(visitor) }
  end

  # What has to be the same, beside a Content-Length, if there is one. lighttpd drops empty fields.
  def comparable(answer)
    length = answer["content-length"]
    assert_equal answer.body.bytesize.to_s, length if length && !answer.body.empty?
    fields = answer.fields.reject { |name, value| value.empty? || IGNORED.include?(name) }.sort
    [answer.status, fields, Digest::SHA256.hexdigest(answer.body)]
  end

  def revalidates(visitor)
    file = visitor.get("/large.bin", HOST)
    seen = visitor.get("/large.bin", HOST.merge("If-Modified-Since" => file["last-modified"]))
    assert_equal [304, ""], [seen.status, seen.body]
    part = visitor.get("/large.bin", HOST.merge("Range" => "bytes=1000-2999999"))
    assert_equal [206, file.body[1000..2_999_999]], [part.status, part.body]
    assert_equal(%w[a=1 b=2], visitor.get("/many-headers", HOST).values("set-cookie"))
  end

  # The body is never in memory as a whole.
  def assert_grows_little(server, &work)
    before = server.memory_bytes
    assert_operator server.peak_memory_during(&work) - before, :<, MAY_GROW
  end

  # With and without a length that is known before.
  def uploads(web_server)
    digest = Digest::SHA256.new
    web_server.connect do |visitor|
      visitor.write("POST /upload HTTP/1.1\r\nHost: probe.localhost\r\nContent-Length: #{UPLOAD}\r\n\r\n")
      (UPLOAD / MIB).times do
        digest << BLOCK
        visitor.write(BLOCK)
      end
      assert_equal({ "bytes" => UPLOAD, "sha256" => digest.hexdigest },
                   JSON.parse(visitor.read_response(within: MOST_SECONDS).body))
      visitor.write("POST /upload HTTP/1.1\r\nHost: probe.localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
      [BLOCK.bytesize.to_s(16), "\r\n", BLOCK, "\r\n0\r\n\r\n"].each { |part| visitor.write(part) }
      assert_equal Digest::SHA256.hexdigest(BLOCK), JSON.parse(visitor.read_response.body)["sha256"]
    end
  end

  # The first line arrives while the application still waits.
  def streams(server, web_server)
    web_server.connect do |visitor|
      visitor.send_request("GET", "/held", HOST)
      lines = []
      visitor.read_response do |piece|
        lines << piece
        server.get("/release") if lines.join == "first\n"
      end
      assert_equal "first\nlast\n", lines.join
    end
  end

  def visitors_at_once(web_server)
    concurrently(VISITORS) do |number|
      web_server.connect do |visitor|
        4.times do |request|
          words = "#{number}-#{request}-" * 50
          assert_equal words, JSON.parse(visitor.request("POST", "/echo", HOST, words).body)["body"]
        end
      end
    end
  end

  # The application's next write has no reader.
  def a_visitor_leaves(server, web_server)
    closed = counts(server)["closed"]
    web_server.connect do |visitor|
      visitor.send_request("GET", "/download?bytes=1000000000&piece=1000&pause_ms=5", HOST)
      visitor.socket.wait_readable(10)
    end
    wait_for("the end of the body") { counts(server)["closed"] > closed }
  end

  # The visitor notices that the answer is not whole. lighttpd, which takes a connection that ends at once for the end
  # of the answer, passes on the length that is not reached.
  def cuts_off(web_server)
    assert_raises(EOFError, Errno::ECONNRESET) do
      web_server.connect do |visitor|
        answer = visitor.get("/raise-late?length=1", HOST)
        raise EOFError if answer.nil? || answer.status >= 500 # it has not begun to send it
      end
    end
  end
end
