# frozen_string_literal: true

require_relative "../../support/http2_test_case"
require_relative "../../support/admin"

# `rate_limit`: how often each client may ask.
class RateLimitTest < Http2TestCase
  include Admin

  parallelize_me!

  APP = <<~'RUBY'
    count = 0
    run ->(env) { [200, {}, [env["PATH_INFO"] == "/count" ? count.to_s : "request #{count += 1}"]] }
  RUBY
  BODY = "429 Too Many Requests: too many requests came from your address\n"
  # The proxy is this machine, and reports the client.
  BEHIND = ["--trusted-proxies", "loopback"].freeze

  def test_a_client_that_asks_too_often_gets_429
    server = limited("3/h", "--request-id", "on")
    assert_equal [200, 200, 200, 429, 429], statuses(server, 5)
    refused = get(server, "/")
    with_id = "#{BODY}Request id: #{refused['x-request-id']}\n"
    assert_equal [429, with_id, "no-store"], [refused.status, refused.body, refused["cache-control"]]
    assert_includes 1150..1200, refused["retry-after"].to_i
    assert_equal ['"3/h";q=3;w=3600', "\"3/h\";r=0;t=#{refused['retry-after']}"],
                 [refused["ratelimit-policy"], refused["ratelimit"]]
    refute_nil refused["x-request-id"]
    assert_equal [200] * 3, statuses(server, 3, client: "192.0.2.8"), "others are not affected"
    assert_equal "6", get(server, "/count", client: "192.0.2.9").body, "no other request has reached the application"
    assert_match(%r{clients that send too many requests get 429.*limit="?3/h"?.*last="?192\.0\.2\.7}, server.log)
  end

  def test_a_client_may_ask_again_after_a_while
    server = limited("5/s burst 1")
    wait_for("a refusal") { get(server, "/").status == 429 }
    wait_for("the next one") { get(server, "/").status == 200 }
  end

  def test_the_connection_stays_and_a_body_ends_it
    server = limited("1/h")
    server.connect do |client|
      assert_equal([200, 429, 429], Array.new(3) { client.request("GET", "/", forwarded).status })
    end
    head = "POST / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7\r\nContent-Length: 30\r\n\r\n"
    answers = server.exchange("#{head}GET /smuggled HTTP/1.1\r\n\r\nab")
    assert_equal [429], answers.map(&:status)
  end

  def test_a_refusal_takes_a_while_but_for_a_proxy
    { [] => 0.05.., BEHIND => ...0.05 }.each do |options, due|
      server = serve(folder_with("config.ru" => APP), "--rate-limit-exempt", "none", *options, *limits("1/h"))
      server.connect do |client|
        client.request("GET", "/", forwarded)
        times = Array.new(10) do
          began = Deadline.now
          assert_equal 429, client.request("GET", "/", forwarded).status
          Deadline.now - began
        end
        assert_includes due, times.min
      end
    end
  end

  def test_streams_of_http2_count_together
    server = limited("3/h", *CLEARTEXT)
    http2(server) do |connection|
      streams = [1, 3, 5, 7, 9]
      streams.each { |stream| connection.send_request(stream, "GET", "/", forwarded_fields) }
      found = streams.map { |stream| connection.answer(stream).status }
      assert_equal({ 200 => 3, 429 => 2 }, found.tally)
    end
    assert_equal 429, get(server, "/").status, "by another protocol as well"
  end

  def test_limits_by_path
    server = limited("/login 2/h", "/api/* 1/h", "10/h")
    assert_equal [200, 200, 429], statuses(server, 3, path: "/login")
    assert_equal "\"/login 2/h\";q=2;w=3600", get(server, "/login")["ratelimit-policy"]
    assert_equal [200, 429], statuses(server, 2, path: "/api/a")
    assert_equal 429, get(server, "/api/b").status
    assert_equal ([200] * 7) + [429], statuses(server, 8, path: "/other")
  end

  # Not only 429: a client can slow down before.
  def test_all_responses_that_a_limit_covers_say_what_is_left
    folder = folder_with("config.ru" => APP, "public/a.txt" => "a")
    server = serve(folder, *BEHIND, *limits("10/h", "/login 2/h"), "--health-path", "/up")
    found = %w[/ /a.txt /login /login /login /].map { |path| left(get(server, path)) }
    assert_equal [["10/h", 10, 9], ["10/h", 10, 8], ["/login 2/h", 2, 1], ["/login 2/h", 2, 0], ["/login 2/h", 2, 0],
                  ["10/h", 10, 5]], found
    FileUtils.mkdir_p(File.join(folder, "tmp"))
    File.write(File.join(folder, "tmp/maintenance.json"), "")
    wait_for("the maintenance page") { server.get("/").status == 503 }
    maintained = get(server, "/", client: "192.0.2.9")
    assert_equal [503, ["10/h", 10, 9]], [maintained.status, left(maintained)]
    [server.get("/"), get(server, "/up")].each { |answer| assert_nil answer["ratelimit"], "no limit covers it" }
  end

  def test_stored_responses_and_http2_say_what_is_left_now
    app = "run ->(_env) { [200, { 'cache-control' => 'public, max-age=60' }, ['stored']] }\n"
    server = serve(folder_with("config.ru" => app), *BEHIND, *CLEARTEXT, "--cache", "1m", *limits("10/h"))
    found = Array.new(3) { get(server, "/") }
    assert_includes found.last["cache-status"], "hit"
    assert_equal([9, 8, 7], found.map { |answer| left(answer).last })
    curl = %w[curl --silent --dump-header - --http2-prior-knowledge --header X-Forwarded-For:192.0.2.7]
    assert_match(%r{^HTTP/2 200.*^ratelimit: "10/h";r=6;}m, IO.popen([*curl, server.url], &:read))
  end

  def test_several_applications_count_separately
    blog, shop = Array.new(2) { folder_with("config.ru" => APP) }
    File.write(File.join(blog, "highball.toml"), <<~TOML)
      bind = "127.0.0.1:0"
      environment = "production"
      trusted_proxies = "loopback"
      rate_limit = "/login 1/h"
      [[app]]
      path = "#{blog}"
      [[app]]
      path = "#{shop}"
      prefix = "/shop"
      rate_limit = ["/login 2/h"]
    TOML
    command = [HighballServer::BINARY, "serve", "--config", File.join(blog, "highball.toml")]
    server = serve(blog, command: command, ready: "/shop/")
    assert_equal [200, 200, 429], statuses(server, 3, path: "/shop/login")
    host = { "Host" => File.basename(blog) }
    assert_equal([200, 429], Array.new(2) { server.get("/login", forwarded.merge(host)).status })
  end

  # A request that waits for a file, or for an answer that may be stored, is routed again.
  def test_a_request_that_waits_counts_once
    folder = folder_with("config.ru" => APP, "public/a.txt" => "a", "public/b.txt" => "b")
    server = serve(folder, *BEHIND, "--cache", "1m", *limits("2/h"))
    assert_equal [[200, "a"], [200, "b"], [429, BODY]],
                 (%w[/a.txt /b.txt /a.txt].map { |path| get(server, path) }.map { |one| [one.status, one.body] })
  end

  def test_health_checks_and_redirects_do_not_count
    server = limited("1/h", "--health-path", "/up", "--redirects", "/old /new")
    %w[/up /old].each { |path| assert_empty statuses(server, 5, path: path) - [200, 301] }
    assert_equal [200, 429], statuses(server, 2)
    assert_equal 200, get(server, "/up").status
  end

  def test_this_machine_is_exempt_unless_it_is_not
    server = serve(folder_with("config.ru" => APP), *limits("1/h"))
    assert_equal([200] * 5, Array.new(5) { server.get("/").status })
    server = limited("1/h", "--rate-limit-exempt", "192.0.2.0/24")
    assert_equal [200] * 5, statuses(server, 5)
    assert_equal([200, 429], Array.new(2) { get(server, "/", client: "198.51.100.1").status })
    assert_includes Array.new(3) { server.get("/").status }, 429
  end

  def test_changed_limits_count_after_hup
    folder = folder_with("config.ru" => APP, "config/highball.toml" => "rate_limit = \"1/h\"\n")
    server = serve(folder, *BEHIND)
    assert_equal [200, 429], statuses(server, 2)
    File.write(File.join(folder, "config/highball.toml"), "rate_limit = [\"/login 1/h\"]\n")
    Process.kill("HUP", server.pid)
    wait_for("the other limit") { get(server, "/").status == 200 }
    assert_equal [200, 429], statuses(server, 2, path: "/login")
  end

  def test_refusals_are_counted_and_logged
    folder = folder_with("config.ru" => APP)
    log = File.join(folder, "access.log")
    server = serve(folder, *BEHIND, *admin, "--access-log", log, *limits("1/h"))
    statuses(server, 4)
    counted = ask_admin("/metrics").body[/^highball_http_rate_limited_requests_total\{.*\} (\d+)$/, 1]
    assert_equal "3", counted
    wait_for("the log") { File.read(log).scan(/^192\.0\.2\.7 .* 429 /).size == 3 }
  end

  # --- attacks

  def test_another_spelling_is_the_same_path
    server = limited("/login 1/h")
    assert_equal 200, get(server, "/login").status
    %w[/login/ //login /./login /x/../login /%6Cogin /login%2F /login.json /login?a /%2e/login].each do |path|
      assert_equal 429, get(server, path).status, path
    end
    assert_equal 429, server.exchange("GET http://x/login HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7\r\n" \
                                      "Connection: close\r\n\r\n").first.status
    %w[/logins /login/a].each { |path| assert_equal 200, get(server, path).status, path }
  end

  def test_addresses_of_one_ipv6_network_are_one_client
    server = limited("2/h")
    found = (1..4).map { |host| get(server, "/", client: "2001:db8::#{host}").status }
    assert_equal [200, 200, 429, 429], found
    assert_equal 200, get(server, "/", client: "2001:db8:0:1::1").status
    assert_equal 429, get(server, "/", client: "2001:DB8:0:0:ffff::").status
    forms = ["::ffff:192.0.2.1", "192.0.2.1", "::ffff:c000:201"]
    assert_equal([200, 200, 429], forms.map { |client| get(server, "/", client: client).status })
  end

  # A client that names others as its own clients stays one.
  def test_a_forged_address_does_not_help
    server = serve(folder_with("config.ru" => APP), "--rate-limit-exempt", "none", "--trusted-proxies", "10.0.0.0/8",
                   *limits("10/h"))
    found = (1..20).map { |number| get(server, "/", client: "198.51.100.#{number}").status }
    assert_operator found.count(429), :>=, 10
  end

  def test_a_flood_of_addresses_locks_nobody_out
    server = limited("1/h")
    assert_equal [200, 429], statuses(server, 2)
    server.connect do |client|
      requests = (0...5000).map { |number| flood_request("10.1.#{number / 250}.#{number % 250}") }
      requests.each_slice(100) do |slice|
        client.write(slice.join)
        slice.each { assert_equal 200, client.read_response.status }
      end
    end
    assert_equal 429, get(server, "/").status
    assert_equal 200, get(server, "/", client: "192.0.2.77").status
  end

  # --- configuration

  def test_mistakes_end_the_start
    ["10", "10/week", "/login", "0/s", "10/s burst 0", "login 5/min"].each do |text|
      output = highball_fails("serve", *limits(text), folder_with("config.ru" => APP))
      assert_match(/rate_limit|rate-limit/, output, text)
    end
    blank = highball_fails("serve", folder_with("config.ru" => APP), env: { "HIGHBALL_RATE_LIMIT" => " " })
    assert_match(/would leave `rate_limit` open/, blank)
  end

  private

  # With these limits, and options.
  def limited(*arguments)
    texts, options = arguments.partition { |text| text.match?(%r{\d/[smhd]}) }
    serve(folder_with("config.ru" => APP), *BEHIND, *limits(*texts), *options, ready: "/count")
  end

  def limits(*texts) = texts.flat_map { |text| ["--rate-limit", text] }

  # The limit's name, its number of requests, and what is left.
  def left(answer)
    policy = answer["ratelimit-policy"].match(/\A"(?<name>.*)";q=(?<quota>\d+);w=3600\z/)
    left = answer["ratelimit"].match(/\A"(?<name>.*)";r=(?<remaining>\d+);t=(?<seconds>\d+)\z/)
    assert_equal policy[:name], left[:name]
    assert_includes 1..1800, left[:seconds].to_i
    [policy[:name], policy[:quota].to_i, left[:remaining].to_i]
  end

  def forwarded(client = "192.0.2.7") = { "X-Forwarded-For" => client }

  def forwarded_fields = { "x-forwarded-for" => "192.0.2.7" }

  def get(server, path, client: "192.0.2.7") = server.get(path, forwarded(client))

  def statuses(server, count, path: "/", **client) = Array.new(count) { get(server, path, **client).status }

  def flood_request(client) = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: #{client}\r\n\r\n"
end
