# frozen_string_literal: true

require "open3"
require_relative "../../support/tls_test_case"

# `response_headers`: header fields that responses get, lose and have replaced.
class ResponseHeadersTest < TlsTestCase
  parallelize_me!

  # Sends one field twice, and one with the name of its software.
  APP = <<~'RUBY'
    run ->(env) {
      sleep 5 if env["PATH_INFO"] == "/slow"
      [200, { "content-type" => "text/plain", "X-App" => "1", "x-twice" => "a\nb", "cache-control" => "max-age=60",
              "x-frame-options" => "SAMEORIGIN" }, ["from the app"]]
    }
  RUBY

  def test_fields_are_replaced_added_and_removed
    server = serve_app("X-Frame-Options: DENY", "-X-App", "+X-Twice: c", "X-New: a, b; c=\"d\"", "-X-None")
    answer = server.get("/")
    assert_equal ["DENY", nil, 'a, b; c="d"', "from the app"],
                 [answer["x-frame-options"], answer["x-app"], answer["x-new"], answer.body]
    lines = raw(server, "/")
    assert_equal(%w[a b c], lines.grep(/\Ax-twice:/i).map { |line| line[/: (.*)/, 1] })
    assert_equal 1, lines.grep(/\Ax-frame-options:/i).size
    assert_equal ["text/plain"], [answer["content-type"]], "other fields stay"
  end

  def test_the_path_decides
    server = serve_app("/docs/* Cache-Control: no-store", "/ X-Home: yes", "/docs/a X-Order: 1", "/docs/* X-Order: 2")
    found = %w[/ /docs /docs/a /docs/a?b /doc /documents].to_h { |path| [path, server.get(path)] }
    assert_equal %w[max-age=60 no-store no-store no-store max-age=60 max-age=60],
                 (found.values.map { |answer| answer["cache-control"] })
    assert_equal ["yes", nil, nil, nil, nil, nil], (found.values.map { |answer| answer["x-home"] })
    assert_equal "2", found["/docs/a"]["x-order"], "the last one counts"
  end

  # Someone who sends a visitor to another spelling of a path must not take a protection away.
  def test_another_spelling_is_the_same_path
    server = serve_app("/admin/* Content-Security-Policy: default-src 'self'")
    %w[/admin/ //admin/a /./admin/a /x/../admin/a /%61dmin/a /admin%2Fa /admin].each do |path|
      assert_equal "default-src 'self'", server.get(path)["content-security-policy"], path
    end
    assert_nil server.get("/administrators")["content-security-policy"]
  end

  # From the application, a file, a redirect, a health check, and as refusals.
  def test_all_responses_have_them
    server = serve_app("X-New: 1", options: ["--redirects", "/old /new", "--health-path", "/up", "--rate-limit",
                                             "/limited 1/h", "--rate-limit-exempt", "none", "--request-timeout", "1s"])
    server.get("/limited")
    found = { "/a.txt" => 200, "/" => 200, "/old" => 301, "/up" => 200, "/limited" => 429, "/slow" => 504 }
    found.each do |path, status|
      answer = server.get(path)
      assert_equal [status, "1"], [answer.status, answer["x-new"]], path
    end
    assert_equal "1", server.request("HEAD", "/")["x-new"]
    refused = server.exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n").first
    assert_equal [413, "1"], [refused.status, refused["x-new"]]
  end

  # A connection's next request is another path's, and a cached response has what the path of its request says.
  def test_requests_of_a_connection_have_nothing_of_each_other
    server = serve_app("/a X-New: 1", options: ["--cache", "1m"])
    server.connect do |client|
      found = %w[/a /b /a /b].map { |path| client.request("GET", path)["x-new"] }
      assert_equal ["1", nil, "1", nil], found
    end
  end

  def test_http2_and_the_own_fields_of_the_server
    server = serve_tls(folder, "--http2-cleartext", "on", "--hsts", "1d", "--request-id", "on",
                       *changes("Strict-Transport-Security: max-age=5", "-X-Request-Id", "X-New: Ä", "-X-App"))
    output, = Open3.capture2("curl", "-sSki", "--http2", "https://localhost:#{tls_port(server)}/")
    assert_equal ["HTTP/2 200", ["strict-transport-security: max-age=5"], [], ["x-new: Ä"], []],
                 [output[/.*\d+/], *%w[strict x-request-id x-new x-app].map { |name| lines_of(output, name) }]
  end

  def test_changed_changes_count_after_hup
    folder = folder("config/highball.toml" => "response_headers = \"X-New: 1\"\n")
    server = serve(folder, ready: "/")
    assert_equal "1", server.get("/")["x-new"]
    File.write(File.join(folder, "config/highball.toml"), "response_headers = [\"X-New: 2, 3\", \"-X-App\"]\n")
    Process.kill("HUP", server.pid)
    wait_for("the other value") { server.get("/")["x-new"] == "2, 3" }
    assert_nil server.get("/")["x-app"]
  end

  def test_mistakes_end_the_start
    ["X-New", "X-New:", "Content-Length: 3", "-Transfer-Encoding", "X New: 1", "X-New: 1\nSet-Cookie: a"].each do |text|
      assert_match(/response_headers|response-headers/, highball_fails("serve", *changes(text), folder), text)
    end
    many = changes(*(0..64).map { |number| "X-#{number}: 1" })
    assert_match(/more than 64/, highball_fails("serve", *many, folder))
    blank = highball_fails("serve", folder, env: { "HIGHBALL_RESPONSE_HEADERS" => " " })
    assert_match(/would leave `response_headers` open/, blank)
  end

  private

  def folder(more = {}) = folder_with({ "config.ru" => APP, "public/a.txt" => "a" }.merge(more))

  def changes(*texts) = texts.flat_map { |text| ["--response-headers=#{text}"] }

  def serve_app(*texts, options: []) = serve(folder, *changes(*texts), *options, ready: "/up")

  def raw(server, path) = Open3.capture2("curl", "-sSi", server.url(path)).first.split("\r\n")

  def lines_of(output, name) = output.lines(chomp: true).grep(/\A#{name}/i)
end
