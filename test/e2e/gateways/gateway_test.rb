# frozen_string_literal: true

require_relative "../../support/gateway_test_case"

# Requests that web servers pass on by FastCGI and LSAPI get the answers that they would get over HTTP.
class GatewayTest < GatewayTestCase
  BIG = 3 * MIB
  SPOOLED = ("0123456789abcdef" * (BIG / 16)).freeze
  FILES = { "public/a.txt" => "a file\n", "public/large.bin" => Random.new(2).bytes(BIG), "public/.hidden" => "no",
            "public/sub/index.html" => "sub", "public/500.html" => "<p>own page of an error</p>" }.freeze
  # Fields of one answer only, and fields about a connection.
  IGNORED = %w[date connection keep-alive transfer-encoding x-request-id x-runtime].freeze
  FIELDS = { "Cookie" => "a=b; c=d", "X-Under-Score" => "1", "Accept" => "*/*", "Authorization" => "Basic YTpi",
             "If-None-Match" => '"x"', "Referer" => "/r", "User-Agent" => "test" }.freeze

  # Method, target, fields and body.
  OF_RUBY = [
    ["GET", "/"], ["HEAD", "/"], ["GET", "/none?a=b%20c"], ["GET", "/%7Ea%2Fb//c"], ["OPTIONS", "/"],
    ["GET", "/echo?x=%20"], ["GET", "/echo", FIELDS], ["POST", "/echo", { "Content-Type" => "text/x" }, "some words"],
    ["POST", "/echo", { "Content-Length" => "0" }], ["PUT", "/upload", {}, SPOOLED], ["DELETE", "/echo"],
    ["POST", "/input", {}, "one\ntwo"], ["PATCH", "/echo", {}, "patch"], ["QUERY", "/echo", {}, "q"],
    ["GET", "/many-headers"], ["HEAD", "/many-headers"], ["GET", "/array"], ["GET", "/array-of-none"],
    ["GET", "/file"], ["HEAD", "/file"], ["GET", "/download?bytes=1000000"], ["GET", "/download?bytes=0"],
    ["GET", "/download?bytes=1000000&length=1"], ["HEAD", "/download?bytes=1000000&length=1"], ["GET", "/stream"],
    ["GET", "/early"], *[201, 204, 299, 302, 304, 404, 503].map { |code| ["GET", "/status?code=#{code}"] },
    ["GET", "/raise"], ["HEAD", "/raise"], ["POST", "/raise", {}, "x"], ["GET", "/throw"]
  ].freeze
  OF_FILES = [
    ["GET", "/a.txt"], ["HEAD", "/a.txt"], ["POST", "/a.txt", {}, "x"], ["GET", "/large.bin"], ["GET", "/sub"],
    ["GET", "/sub/"], ["GET", "/.hidden"], ["GET", "/a.txt", { "Range" => "bytes=2-3" }],
    ["GET", "/a.txt", { "Range" => "bytes=-2" }], ["GET", "/a.txt", { "Range" => "bytes=100-" }],
    ["GET", "/large.bin", { "Range" => "bytes=1000-2999999" }], ["GET", "/a.txt", { "If-None-Match" => "*" }],
    ["GET", "/a.txt", { "If-Modified-Since" => "Fri, 31 Dec 2100 00:00:00 GMT" }],
    ["GET", "/a.txt", { "If-Match" => '"other"' }]
  ].freeze
  # These end their connection.
  REFUSED = [
    ["GET", "/wrong-status"], ["GET", "/wrong-header"], ["GET", "/wrong-triplet"], ["GET", "/wrong-body"],
    ["POST", "/upload", { "Content-Length" => "x" }, nil], ["GET", "/a\\b|c"], ["GET", "/../a"], ["GET", "*"],
    ["GET", "/", { "Host" => "a b" }], ["GET", "/#{'q' * 9000}"]
  ].freeze

  def test_answers_are_those_over_http
    folder = probe_with(FILES)
    server = serve_all(folder, env: { "PROBE_FILE" => File.join(folder, "public/large.bin") })
    assert_same_answers(server, OF_RUBY + OF_FILES)
    REFUSED.each { |request| assert_same_answers(server, [request]) }
  end

  # Other clients of the web server need its connections: a refusal occupies none for longer than it takes.
  def test_refusals_of_a_rate_limit_come_at_once
    server = serve_all("probe", "--rate-limit", "1/h", "--rate-limit-exempt", "none")
    with_each(server) do |connection, protocol|
      connection.get("/")
      times = Array.new(10) do
        began = Deadline.now
        assert_equal 429, connection.get("/").status, protocol
        Deadline.now - began
      end
      assert_operator times.min, :<, 0.05, protocol
    end
  end

  # A web server that does not know how long the body is sends it without a length.
  def test_bodies_of_unknown_length
    server = serve_all("probe")
    [SPOOLED, "some words", ""].each do |body|
      chunks = body.scan(/.{1,65536}/m)
      over_http = server.connect do |connection|
        coded = chunks.map { |chunk| "#{chunk.bytesize.to_s(16)}\r\n#{chunk}\r\n" }.join
        connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n#{coded}0\r\n\r\n")
        JSON.parse(connection.read_response.body)["body_sha256"]
      end
      gateway(server, "fastcgi") do |connection|
        2.times do
          seen = JSON.parse(connection.request("POST", "/echo", {}, chunks).body)
          assert_equal [over_http, body.bytesize], seen.values_at("body_sha256", "body_bytes")
        end
      end
    end
  end

  def test_frameworks
    %w[blog sinatra static].each do |name|
      server = serve_all(copy_of_example(name))
      %w[/ /none /posts/new /index.html].each { |target| assert_same_pages(server, target) }
    end
  end

  # Pages for developers show secrets, and a web server may pass on anyone's requests.
  def test_no_web_server_is_a_developer
    rack = "run ->(env) { env[\"PATH_INFO\"] == \"/\" ? [200, {}, []] : raise(\"the secret reason\") }"
    app = folder_with("config.ru" => rack)
    server = serve_all(app, environment: "development")
    host = { "Host" => "127.0.0.1", "Accept" => "text/html" }
    assert_includes server.get("/raise", host).body, "the secret reason"
    with_each(server) do |connection, protocol|
      seen = connection.get("/raise", host.merge("Cookie" => server.send(:cookie_for, "127.0.0.1")), params: LOCAL)
      assert_equal 500, seen.status
      refute_includes seen.body, "the secret reason", protocol
    end
  end

  # A web server reports its client; a client that is a trusted proxy reports its own. The next request has neither.
  def test_a_trusted_proxy_in_front_of_the_web_server
    mirror = 'run ->(env) { [200, {}, [env.values_at("REMOTE_ADDR", "HTTP_X_FORWARDED_FOR").inspect]] }'
    server = serve_all(folder_with("config.ru" => mirror), "--trusted-proxies", "10.0.0.1")
    reports = { "X-Forwarded-For" => "203.0.113.66, 192.0.2.9" }
    with_each(server) do |connection, protocol|
      [["10.0.0.1", reports, %w[192.0.2.9] + reports.values], ["10.0.0.1", {}, ["10.0.0.1", nil]],
       ["192.0.2.7", reports, ["192.0.2.7", nil]], [nil, {}, ["127.0.0.1", nil]]].each do |address, fields, due|
        seen = connection.get("/", fields, params: { "REMOTE_ADDR" => address })
        assert_equal due.inspect, seen.body, protocol
      end
    end
  end

  private

  # Pages without what Rails makes for each: keys against forgery.
  def assert_same_pages(server, target)
    host = { "Host" => "127.0.0.1" }
    due = page(server.stranger.get(target, host))
    with_each(server) do |connection, protocol|
      2.times { assert_equal due, page(connection.get(target, host, params: LOCAL)), "#{protocol}: #{target}" }
    end
  end

  def page(answer)
    body = answer.body.gsub(/name="(csrf-token" content|authenticity_token" value)="[^"]*"/n, "")
    [answer.status, answer["content-type"], answer["cache-control"], answer.values("set-cookie").length, body]
  end

  # Each request over HTTP, and over each protocol: these all on one connection.
  def assert_same_answers(server, requests, params: LOCAL)
    with_each(server) do |connection, protocol|
      requests.each do |request|
        due = comparable(server.request(*request))
        seen = comparable(connection.request(*request, params: params))
        assert_equal due, seen, "#{protocol}: #{request.inspect[0, 200]}"
      end
    end
  end

  # What has to be the same. A correct Content-Length may be missing. Long bodies are compared by their digests.
  def comparable(answer)
    return unless answer

    length = ["content-length", answer.body.bytesize.to_s]
    fields = answer.fields.reject { |field| IGNORED.include?(field.first) || field == length }.sort
    return [answer.status, fields, env_of(answer)] if answer["content-type"] == "application/json"

    body = answer.body.bytesize > 2000 ? Digest::SHA256.hexdigest(answer.body) : answer.body
    [answer.status, fields, body]
  end

  # LSAPI has another order of the request's fields. Only a connection of HTTP can be taken over.
  def env_of(answer)
    JSON.parse(answer.body).tap { |echo| echo["rack"]&.delete("rack.hijack") }
  end
end
