# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/web_server"

# Only a browser that has opened the link in the terminal sees error pages for developers. Other clients that may be a
# developer's get a hint about the link.
class DeveloperLinkTest < E2ETest
  HTML = { "Accept" => "text/html", "Host" => "localhost" }.freeze
  SECRET = "between us"
  RAISING = <<~RUBY.freeze
    run lambda { |env|
      raise "#{SECRET}" if env["PATH_INFO"] == "/raise"
      [200, {}, [env.values_at("HTTP_COOKIE", "QUERY_STRING", "REQUEST_URI").inspect]]
    }
  RUBY
  # Header fields by which a proxy names itself.
  OF_PROXIES = { "X-Forwarded-For" => "192.0.2.1", "X-Real-IP" => "192.0.2.1", "X-Client-IP" => "192.0.2.1",
                 "CF-Connecting-IP" => "192.0.2.1", "True-Client-IP" => "192.0.2.1", "Via" => "1.1 x",
                 "Forwarded" => "for=192.0.2.1" }.freeze

  def test_without_the_link_there_is_only_a_hint
    server = serve_raising
    server.stranger.use do |stranger|
      page = stranger.get("/raise", HTML)
      assert_equal 500, page.status
      assert_match %r{\Atext/html}, page["content-type"]
      assert_hint page.body
      assert_match(/default-src 'none'/, page["content-security-policy"])
      assert_hint stranger.get("/raise", { "Host" => "localhost" }).body
      assert_hint stranger.get("/raise", HTML.merge("Accept" => "application/json")).body
    end
    assert_includes server.log, SECRET
  end

  def test_the_same_where_the_application_did_not_boot
    server = HighballServer.new(folder_with("config.ru" => "raise '#{SECRET}'\n"), environment: "development")
    @servers << server
    wait_for("the diagnosis", within: 60) { server.log.include?("fix it, then reload the page: http") }
    answer = get_as_stranger(server, "/", HTML)
    assert_equal 503, answer.status
    assert_hint answer.body
    assert_includes server.get("/", HTML).body, SECRET
    # Clients without the link can make the application boot again.
    File.write(File.join(server.app, "config.ru"), RAISING)
    wait_for("the app", within: 30) { get_as_stranger(server, "/", HTML).status == 200 }
  end

  def test_the_link_sets_a_cookie_and_is_not_seen_again
    server = serve_raising
    answer = get_as_stranger(server, "/raise?a=b&highball=#{server.link_key}&c=d", HTML)
    assert_equal [303, "/raise?a=b&c=d", "no-referrer", "no-store"],
                 [answer.status, *%w[location referrer-policy cache-control].map { |name| answer[name] }]
    cookie, *attributes = answer["set-cookie"].split("; ")
    assert_equal %w[HttpOnly Max-Age=31536000 Path=/ SameSite=Strict], attributes.sort
    seen = get_as_stranger(server, "/raise", HTML.merge("Cookie" => "x=y; #{cookie}"))
    assert_includes seen.body, SECRET
    refute_includes seen.body, cookie.split("=").last
  end

  def test_no_application_and_no_log_sees_the_key
    log = File.join(folder_with, "access.log")
    server = serve_raising("--access-log", log)
    cookie = cookie_of(server, "localhost")
    echo = ->(cookies) { get_as_stranger(server, "/?a", HTML.merge("Cookie" => cookies)).body }
    assert_equal '["x=y; z=1", "a", "/?a"]', echo.call("x=y; #{cookie};z=1")
    assert_equal '[nil, "a", "/?a"]', echo.call(cookie)
    wait_for("the access log") { File.read(log).scan("GET /?a ").length == 2 }
    assert_includes File.read(log), "GET / HTTP/1.1\" 303"
    [server.link_key, cookie.split("=").last].each { |token| refute_includes File.read(log), token }
    refute_includes JSON.generate(server.status["diagnosis"]), server.link_key
  end

  def test_a_wrong_link_or_cookie_is_of_no_use
    server = serve_raising
    key = server.link_key
    [key.reverse, key[0..-2], "#{key}0", ""].each do |wrong|
      answer = get_as_stranger(server, "/?highball=#{wrong}", HTML)
      assert_equal [200, nil], [answer.status, answer["set-cookie"]], wrong
      assert_hint get_as_stranger(server, "/raise", HTML.merge("Cookie" => "highball-diagnosis=#{wrong}")).body
    end
    # Nor is that of another host: an application at another port of that host learns it.
    cookie = cookie_of(server, "127.0.0.1")
    assert_hint get_as_stranger(server, "/raise", HTML.merge("Cookie" => cookie)).body
  end

  def test_what_is_not_a_developers_request_gets_nothing_by_it
    server = serve_raising
    cookie = cookie_of(server, "localhost")
    others = OF_PROXIES.map { |name, value| { name => value } }
    of_sites = [{ "Sec-Fetch-Site" => "cross-site" }, { "Origin" => "http://evil.example" }, { "Origin" => "null" }]
    [*others, *of_sites, { "Host" => "evil.example" }].each do |fields|
      answer = get_as_stranger(server, "/raise", HTML.merge("Cookie" => cookie).merge(fields))
      assert_equal "500 Internal Server Error: the application raised an exception; its log says which\n", answer.body,
                   fields
      next if of_sites.include?(fields) # a link may stand in a terminal that is a web page

      answer = get_as_stranger(server, "/?highball=#{server.link_key}", HTML.merge(fields))
      assert_equal [303, nil], [answer.status, answer["set-cookie"]], fields
    end
  end

  # Browsers take a backslash for a slash, and two slashes at the beginning for a host.
  def test_the_link_leads_to_no_other_host
    server = serve_raising
    { "//evil.example/" => "/evil.example/", "/\\evil.example/" => "/%5Cevil.example/",
      "/\\/evil.example" => "/%5C/evil.example", "///\\evil.example" => "/%5Cevil.example",
      "/.//evil.example" => "/.//evil.example", "/%5cevil.example" => "/%5cevil.example",
      "/%09/evil.example" => "/%09/evil.example", "http://localhost//evil.example" => "/evil.example",
      "http://evil.example/a" => "/a", "/@evil.example" => "/@evil.example" }.each do |path, location|
      answer = get_as_stranger(server, "#{path}?highball=#{server.link_key}", HTML)
      assert_equal [303, location], [answer.status, answer["location"]], path
    end
    answer = get_as_stranger(server, "http://evil.example/?highball=#{server.link_key}", HTML)
    assert_nil answer["set-cookie"]
  end

  def test_a_browser_stays_known_over_restarts
    server = serve_raising
    cookie = cookie_of(server, "localhost")
    server.stop
    other = serve_raising
    assert_equal server.link_key, other.link_key
    assert_includes get_as_stranger(other, "/raise", HTML.merge("Cookie" => cookie)).body, SECRET
  end

  def test_status_prints_the_link
    server = serve_raising
    assert_equal "http://127.0.0.1:#{server.port}/?highball=#{server.link_key}", server.status["browser_link"]
  end

  def test_the_rule_can_be_chosen
    local = serve_raising("--show-diagnosis", "local")
    assert_includes get_as_stranger(local, "/raise", HTML).body, SECRET
    assert_nil local.link_key
    off = serve_raising("--show-diagnosis", "off")
    assert_equal "500 Internal Server Error: the application raised an exception; its log says which\n",
                 get_as_stranger(off, "/raise", HTML).body
  end

  # A web server on this machine that adds no header fields looks like a browser.
  def test_visitors_of_a_web_server_are_no_developers
    needs("nginx")
    server = serve_raising
    bare = "server {\n listen 80;\n location / {\n proxy_pass http://127.0.0.1:#{server.port};\n }\n}\n"
    nginx = WebServer.start("nginx", bare)
    nginx.connect do |visitor|
      ["localhost", "127.0.0.1", "example.org"].each do |host|
        assert_hint visitor.get("/raise", HTML.merge("Host" => host)).body
      end
    end
  ensure
    nginx&.finish
  end

  # On a shared machine, another user can learn a cookie with an application at another port of the same host.
  def test_a_cookie_is_of_no_use_to_another_user
    skip "needs root, to become another user" unless Process.uid.zero?
    server = serve_raising
    cookie = cookie_of(server, "localhost")
    port = server.port
    reader, writer = IO.pipe
    pid = fork do
      Process::GID.change_privilege(65_534)
      Process::UID.change_privilege(65_534)
      answer = HttpConnection.tcp(port).get("/raise", HTML.merge("Cookie" => cookie))
      writer.write(answer.body)
      writer.close
      exit!(0)
    end
    writer.close
    assert_hint reader.read
    Process.wait(pid)
  end

  private

  def serve_raising(*options) = serve(folder_with("config.ru" => RAISING), *options, environment: "development")

  def get_as_stranger(server, target, headers)
    server.stranger.use { |connection| connection.get(target, headers) }
  end

  def cookie_of(server, host)
    answer = get_as_stranger(server, "/?highball=#{server.link_key}", { "Host" => host })
    answer["set-cookie"][/\A[^;]+/]
  end

  def assert_hint(text)
    assert_includes text.force_encoding("UTF-8"), "Open the link that Highball printed there"
    refute_match(/#{SECRET}|config\.ru|RuntimeError/, text)
  end
end
