# frozen_string_literal: true

require "open3"
require_relative "../../support/tls_test_case"

# `canonical_host` and `redirects`: where visitors of other hosts and old paths are sent.
class RedirectsTest < TlsTestCase
  parallelize_me!

  APP = <<~'RUBY'
    run ->(env) { [200, {}, ["from the app: #{env['REQUEST_METHOD']} #{env['SCRIPT_NAME']}#{env['PATH_INFO']}"]] }
  RUBY
  REDIRECTS = ["/old /new", "/form /post 308", "/blog/* /articles/*", "/tag/* /search?tag=*",
               "/docs/* https://docs.example.org/v2/* 302"].freeze

  def test_visitors_of_other_hosts_are_sent_to_the_canonical_one
    server = serve_app("--canonical-host", "blog.test")
    { "www.blog.test" => "http://blog.test/a?b=c", "www.blog.test:8080" => "http://blog.test:8080/a?b=c",
      "192.0.2.1" => "http://blog.test/a?b=c" }.each do |host, to|
      assert_equal [308, to, ""], answer(server.get("/a?b=c", { "Host" => host }))
    end
    ["blog.test", "BLOG.test.", "blog.test:8080"].each do |host|
      assert_equal 200, server.get("/a", { "Host" => host }).status, host
    end
    answer = server.exchange("POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nxGET / HTTP/1.1\r\n\r\n").first
    assert_equal [308, "http://blog.test/form"], [answer.status, answer["location"]]
    assert_equal 200, server.exchange("GET / HTTP/1.0\r\n\r\n").first.status, "it could name no other host"
  end

  def test_paths_that_have_moved
    server = serve_app(*redirects(*REDIRECTS))
    { "/old" => [301, "/new"], "/old?a=b" => [301, "/new?a=b"], "/form" => [308, "/post"],
      "/blog/" => [301, "/articles/"], "/blog/2024/x%20y?a" => [301, "/articles/2024/x%20y?a"],
      "/tag/ruby?page=2" => [301, "/search?tag=ruby&page=2"],
      "/docs/a/b?c" => [302, "https://docs.example.org/v2/a/b?c"] }.each do |target, expected|
      assert_equal expected, answer(server.get(target)).first(2), target
      assert_equal expected, answer(server.request("POST", target, {}, "x")).first(2), target
    end
    ["/older", "/old/", "/blog", "/OLD", "/new", "/"].each do |path|
      assert_equal "from the app: GET #{path}", server.get(path).body
    end
  end

  def test_http2
    server = serve_app("--http2-cleartext", "on", "--canonical-host", "blog.test", *redirects("/old/* /new/*"))
    written = "%{http_version} %{http_code} %{redirect_url}" # rubocop:disable Style/FormatStringToken -- curl's
    { "/old/a?b" => "2 301 http://blog.test:#{server.port}/new/a?b",
      "/a" => "2 308 http://blog.test:#{server.port}/a" }.each do |target, expected|
      output, = Open3.capture2("curl", "-sS", "--http2-prior-knowledge", "-w", written, server.url(target))
      assert_equal expected, output
    end
  end

  # One redirect leads over HTTPS, to the canonical host and to the new path.
  def test_one_redirect_does_all
    server = serve_tls(folder_with("config.ru" => APP), "--redirect-https", "on", "--canonical-host", "blog.test",
                       "--health-path", "/up", *redirects("/old/* /new/*", "/docs https://docs.example.org/"))
    port = tls_port(server)
    { ["www.blog.test", "/a?b"] => [308, "https://blog.test/a?b"],
      ["www.blog.test", "/old/a?b"] => [301, "https://blog.test/new/a?b"],
      ["blog.test:80", "/old/a"] => [301, "https://blog.test:#{port}/new/a"],
      ["blog.test", "/a"] => [308, "https://blog.test/a"],
      ["www.blog.test", "/docs?a"] => [301, "https://docs.example.org/?a"] }.each do |(host, target), expected|
      assert_equal expected, answer(server.get(target, { "Host" => host })).first(2), "#{host}#{target}"
    end
    assert_equal [200, nil, "ready\n"], answer(server.get("/up", { "Host" => "www.blog.test" }))
    connect_tls(port) do |client|
      assert_equal [301, "https://blog.test/new/a"], answer(client.request("GET", "/old/a")).first(2)
      assert_equal [301, "/new/a"], answer(client.request("GET", "/old/a", { "Host" => "blog.test" })).first(2)
    end
  end

  def test_checks_and_challenges_are_not_redirected
    challenge = "/.well-known/acme-challenge/token"
    server = serve_app("--canonical-host", "blog.test", "--probe-path", "/up", "--health-path", "/ready",
                       *redirects("/* https://new.example.org/*"))
    { "/up" => "from the app: GET /up", "/ready" => "ready\n",
      challenge => "from the app: GET #{challenge}" }.each do |path, body|
      assert_equal [200, nil, body], answer(server.get(path, { "Host" => "10.0.0.1" }))
    end
    assert_equal [301, "https://new.example.org/upper"], answer(server.get("/upper")).first(2)
  end

  # The target is another host of the same application.
  def test_a_browser_that_has_arrived_stays
    server = serve_app(*redirects("/* https://new.example.org/*"))
    assert_equal [301, "https://new.example.org/a?b"], answer(server.get("/a?b")).first(2)
    assert_equal 200, server.get("/a?b", { "Host" => "NEW.example.org" }).status
  end

  # --- attacks

  def test_no_target_leads_to_another_host
    server = serve_app(*redirects("/go/* /*", "/out/* https://docs.example.org/*", "/q/* /s?q=*"))
    { "/go//evil.example/" => "/evil.example/", "/go///evil.example" => "/evil.example",
      "/go/\\evil.example" => "/%5Cevil.example", "/go/%2F/evil.example" => "/%2F/evil.example",
      "/go/https://evil.example" => "/https://evil.example",
      "/out//evil.example" => "https://docs.example.org//evil.example",
      "/out/@evil.example" => "https://docs.example.org/@evil.example",
      "/out/%0d%0aSet-Cookie:a=b" => "https://docs.example.org/%0d%0aSet-Cookie:a=b",
      "/go/%0d%0aX:%20y?%0d%0a" => "/%0d%0aX:%20y?%0d%0a" }.each do |target, to|
      response = server.get(target)
      assert_equal [301, [to], nil], [response.status, response.values("location"), response["set-cookie"]], target
    end
  end

  # What clients send as a host, or as a host that a proxy has seen, is in no redirect.
  def test_a_host_is_not_repeated
    server = serve_app("--canonical-host", "blog.test", *redirects("/old /new"))
    forged = { "Host" => "evil.example", "X-Forwarded-Host" => "evil.example", "X-Forwarded-Proto" => "https" }
    assert_equal [301, "http://blog.test/new"], answer(server.get("/old", forged)).first(2)
    assert_equal [308, "http://blog.test/"], answer(server.get("/", forged)).first(2)
    absolute = server.exchange("GET http://evil.example/old HTTP/1.1\r\nHost: blog.test\r\nConnection: close\r\n\r\n")
    assert_equal [[301, "http://blog.test/new"]], (absolute.map { |one| answer(one).first(2) })
    plain = serve_app(*redirects("/old /new"))
    assert_equal [301, "/new"], answer(plain.get("/old", forged)).first(2)
    ["evil.example/a", "a@evil.example", "evil.example:80:80", "evil.example\rX: y"].each do |host|
      answers = plain.exchange("GET /old HTTP/1.1\r\nHost: #{host}\r\nConnection: close\r\n\r\n")
      assert_equal [400], answers.map(&:status), host
    end
  end

  # --- configuration

  def test_mistakes_end_the_start
    { ["/a /b", "/b /a"] => %r{in a circle by `/a /b 301` and `/b /a 301`}, ["/* /new/*"] => %r{`/\* /new/\* 301`},
      ["/a //evil.example"] => /is not a target/, ["/a* https://a.example*"] => /is not a target/,
      ["/a /b 200"] => /none of the statuses/, ["/a"] => /write FROM TO/,
      ["/a /b", "/a /c"] => %r{two redirects from /a} }.each do |texts, problem|
      assert_match problem, highball_fails("serve", *redirects(*texts), folder_with("config.ru" => APP))
    end
    hosts = ["--canonical-host", "www.blog.test", "--hosts", "blog.test"]
    assert_match(/www.blog.test is not one of the application's `hosts`/,
                 highball_fails("serve", *hosts, folder_with("config.ru" => APP)))
  end

  def test_each_application_has_its_own_and_changes_them_without_a_restart
    blog, shop = Array.new(2) { folder_with("config.ru" => APP) }
    write = lambda do |to|
      File.write(File.join(blog, "highball.toml"), <<~TOML)
        bind = "127.0.0.1:0"
        environment = "production"
        [[app]]
        path = "#{blog}"
        hosts = ["blog.test", "www.blog.test"]
        canonical_host = "blog.test"
        [[app]]
        path = "#{shop}"
        prefix = "/shop"
        redirects = ["/old/* #{to}/*", "/ /start"]
      TOML
    end
    write.call("/new")
    command = [HighballServer::BINARY, "serve", "--config", File.join(blog, "highball.toml")]
    server = serve(blog, command: command, ready: "/shop/x")
    assert_equal [308, "http://blog.test/old/a"], answer(server.get("/old/a", { "Host" => "www.blog.test" })).first(2)
    ["/shop", "/shop/"].each { |path| assert_equal [301, "/shop/start"], answer(server.get(path)).first(2) }
    assert_equal [301, "/shop/new/a"], answer(server.get("/shop/old/a")).first(2)
    write.call("/newer")
    Process.kill("HUP", server.pid)
    wait_for("the new target") { server.get("/shop/old/a")["location"] == "/shop/newer/a" }
  end

  private

  def serve_app(*options) = serve(folder_with("config.ru" => APP), *options, ready: "/up")

  def redirects(*texts) = texts.flat_map { |text| ["--redirects", text] }

  def answer(response) = [response.status, response["location"], response.body]
end
