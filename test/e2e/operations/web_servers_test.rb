# frozen_string_literal: true

require "shellwords"
require_relative "../../support/e2e_test"
require_relative "../../support/behind_web_servers"

# The configurations that `highball config` prints, in the real programs, in front of a real Highball.
class WebServersTest < E2ETest
  include BehindWebServers

  VISITOR = "127.0.0.9"
  # Header fields that visitors send, and that must not be believed.
  LIES = { "X-Forwarded-For" => "192.0.2.1", "X-Forwarded-Proto" => "https", "X-Forwarded-Host" => "evil.example",
           "X-Forwarded-Ssl" => "on", "X-Forwarded-Scheme" => "https", "X-Forwarded-Port" => "444",
           "X-Real-IP" => "192.0.2.1", "Forwarded" => "for=192.0.2.1;proto=https;host=evil.example" }.freeze
  UPGRADE = "GET /hijack HTTP/1.1\r\nHost: probe.localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
  HOST = { "Host" => "probe.localhost" }.freeze

  { "nginx" => "nginx", "apache" => "apache2", "caddy" => "caddy", "haproxy" => "haproxy" }.each do |program, command|
    define_method("test_#{program}_over_tcp") { check(program, command, serve(probe, "--max-body", "40m")) }

    define_method("test_#{program}_over_a_unix_socket") do
      folder = folder_with
      File.chmod(0o755, folder)
      server = serve(probe, "--max-body", "40m", bind: File.join(folder, "highball.sock"))
      File.chmod(0o777, server.socket_path) # the web server's user is another one
      check(program, command, server)
    end
  end

  FASTCGI = { "nginx" => "nginx", "apache" => "apache2", "caddy" => "caddy", "haproxy" => "haproxy",
              "lighttpd" => "lighttpd" }.freeze

  FASTCGI.each do |program, command|
    define_method("test_#{program}_accepts_its_fastcgi_configuration") { accepts_fastcgi(program, command) }
    define_method("test_#{program}_over_fastcgi_and_tcp") { over_fastcgi(program, command, "fastcgi://127.0.0.1:0") }

    define_method("test_#{program}_over_fastcgi_and_a_unix_socket") do
      folder = folder_with
      File.chmod(0o755, folder)
      over_fastcgi(program, command, "fastcgi+unix:#{File.join(folder, 'highball.sock')}")
    end
  end

  def test_nginx_sends_public_files_itself
    app = folder_with("config.ru" => "run ->(env) { [200, {}, [env['PATH_INFO']]] }\n", "public/a.txt" => "file",
                      "public/.hidden" => "secret")
    File.chmod(0o755, app)
    server = serve(app) # in a folder of a long name, for which nginx has little room
    nginx = in_front("nginx", "nginx", server, "--host", "probe.localhost")
    nginx.connect do |visitor|
      assert_equal "file", visitor.get("/a.txt", HOST).body
      assert_equal "/.hidden", visitor.get("/.hidden", HOST).body
      assert_equal "/b%2Fc", visitor.get("/b%2Fc", HOST).body
    end
    server.stop
    nginx.connect { |visitor| assert_equal "file", visitor.get("/a.txt", HOST).body }
    nginx.connect { |visitor| assert_equal 502, visitor.get("/other", HOST).status }
  end

  private

  # The program's own check accepts what is printed, with and without a limit, a public folder, and a socket.
  def accepts_fastcgi(program, command)
    needs(command)
    with_files = folder_with("config.ru" => "", "public/a.txt" => "")
    [["-b", "fastcgi://127.0.0.1:9000"], ["-b", "fastcgi+unix:/run/probe.sock", "--max-body", "1m"]].each do |options|
      printed = printed_for(program, "--via", "fastcgi", *options, "--host", "probe.localhost", with_files)
      assert_nil WebServer.problem(command, printed), printed
    end
    broken = printed_for(program, "-b", "fastcgi://127.0.0.1:9000", "--host", "probe.localhost", with_files)
    refute_nil WebServer.problem(command, "#{broken}\nnonsense {"), "the check finds something"
  end

  def over_fastcgi(program, command, bind)
    server = serve(probe, "--max-body", "40m", "-b", bind)
    address = server.status["binds"].find { |one| one.start_with?("fastcgi") }
    path = address[/\Afastcgi\+unix:(.*)/, 1]
    File.chmod(0o777, path) if path # the web server's user is another one
    web_server = in_front(program, command, server, "--via", "fastcgi", bind: address)
    %i[passes_on_as_it_came knows_who_asks takes_uploads streams].each do |what|
      web_server.connect(from: VISITOR) { |visitor| send(what, visitor, web_server) }
    end
  end

  # FastCGI has the visitor's address and scheme in parameters; what visitors claim is left out.
  def knows_who_asks(visitor, _web_server)
    env = JSON.parse(visitor.get("/echo", HOST.merge(LIES)).body).fetch("env")
    assert_equal [VISITOR, "probe.localhost"], env.values_at("REMOTE_ADDR", "HTTP_HOST")
    assert_includes [nil, VISITOR], env["HTTP_X_FORWARDED_FOR"]
    refute_match(/192\.0\.2\.1|evil|444|https/, env.to_s)
    authorized = JSON.parse(visitor.get("/echo", HOST.merge("Authorization" => "Basic YTpi")).body).fetch("env")
    assert_equal "Basic YTpi", authorized["HTTP_AUTHORIZATION"]
  end

  def check(program, command, server)
    web_server = in_front(program, command, server)
    checks = %i[passes_on_as_it_came tells_who_asks takes_uploads streams upgrades]
    checks << :refuses_uploads unless program == "caddy" # which says 100 (Continue) before it looks
    checks.each do |what|
      web_server.connect(from: VISITOR) { |visitor| send(what, visitor, web_server) }
    end
  end

  # A web server in front of this Highball, with the configuration that `highball config` prints.
  def in_front(program, command, server, *options, bind: nil)
    bind ||= server.socket_path ? "unix:#{server.socket_path}" : "127.0.0.1:#{server.port}"
    start_web_server(command, printed_for(program, "--max-body", "40m", "-b", bind, *options, server.app))
  end

  def passes_on_as_it_came(visitor, _web_server)
    2.times { assert_equal "probe\n", visitor.get("/", HOST).body } # on one connection
    assert_equal "no /a%2Fb//c\n", visitor.get("/a%2Fb//c", HOST).body
    echo = JSON.parse(visitor.request("POST", "/echo?a=b%20c", HOST, "some words").body)
    assert_equal ["a=b%20c", "some words"], [echo.dig("env", "QUERY_STRING"), echo["body"]]
  end

  # In all versions of Rack, and despite the visitor's header fields.
  def tells_who_asks(visitor, _web_server)
    env = JSON.parse(visitor.get("/echo", HOST.merge(LIES)).body).fetch("env")
    assert_equal VISITOR, env["HTTP_X_FORWARDED_FOR"]
    request = Rack::Request.new(env.merge("rack.url_scheme" => "http"))
    assert_equal ["http", "probe.localhost", "probe.localhost"], [request.scheme, request.host, env["HTTP_HOST"]]
    refute_match(/192\.0\.2\.1|evil|444|https/, env.to_s)
  end

  def takes_uploads(visitor, _web_server)
    body = Random.new(1).bytes(20 * MIB)
    answer = visitor.request("POST", "/upload", HOST, body, within: 60)
    assert_equal({ "bytes" => body.bytesize, "sha256" => Digest::SHA256.hexdigest(body) }, JSON.parse(answer.body))
    chunked = "POST /upload HTTP/1.1\r\nHost: probe.localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = visitor.write("#{chunked}5\r\nhello\r\n0\r\n\r\n").read_response
    assert_equal 5, JSON.parse(answer.body)["bytes"]
  end

  # A body that is too large is refused before it is sent.
  def refuses_uploads(visitor, _web_server)
    fields = HOST.merge("Expect" => "100-continue", "Content-Length" => 41 * MIB)
    assert_equal 413, visitor.request("POST", "/upload", fields).status
  end

  # The first line arrives while the application still waits.
  def streams(visitor, web_server)
    visitor.send_request("GET", "/held", HOST)
    lines = []
    visitor.read_response do |piece|
      lines << piece
      web_server.connect { |other| other.get("/release", HOST) } if lines.join == "first\n"
    end
    assert_equal "first\nlast\n", lines.join
  end

  def upgrades(visitor, _web_server)
    assert_equal 101, visitor.write(UPGRADE).read_response.status
    3.times do |number|
      visitor.write("line #{number}\n")
      assert_equal "echo line #{number}\n", visitor.read_bytes(12)
    end
  end
end
