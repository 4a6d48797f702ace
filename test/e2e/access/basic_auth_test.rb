# frozen_string_literal: true

require_relative "../../support/gateway_test_case"
require_relative "../../support/http2_client"
require_relative "../../support/basic_auth_users"
require_relative "../../support/env_mirror"

# Applications for users with a password: no other client reaches their files or Ruby.
class BasicAuthTest < GatewayTestCase
  include EnvMirror
  include BasicAuthUsers

  def test_without_a_password_nothing_is_reached
    server = serve_users({ "ann" => BCRYPT })
    [["GET", "/"], ["HEAD", "/"], ["POST", "/", "body"], ["OPTIONS", "/"], ["GET", "/a.txt"], ["GET", "/none"],
     ["DELETE", "/a.txt"]].each do |method, target, body|
      answer = server.request(method, target, {}, body)
      assert_equal [401, 'Basic realm="Restricted", charset="UTF-8"', "no-store"],
                   [answer.status, answer["www-authenticate"], answer["cache-control"]], "#{method} #{target}"
      refute_includes answer.body.to_s, "a file"
    end
    preflight = { "Origin" => "https://a.example", "Access-Control-Request-Method" => "GET" }
    assert_equal 401, server.request("OPTIONS", "/", preflight).status
    assert_equal 0, JSON.parse(server.get("/", by("ann")).body).fetch("requests before")
  end

  def test_a_refusal_has_the_id_of_its_request
    answer = serve_users({ "ann" => BCRYPT }, "--request-id", "on").get("/")
    assert_includes answer.body, "\nRequest id: #{answer['x-request-id']}\n"
  end

  def test_browsers_ask_again_on_the_same_connection
    serve_users({ "ann" => BCRYPT }).connect do |connection|
      assert_equal 401, connection.get("/").status
      assert_equal 200, connection.get("/", by("ann")).status
      assert_equal "a file\n", connection.get("/a.txt", by("ann")).body
      assert_equal 401, connection.get("/").status, "the next request has no user"
    end
  end

  def test_each_kind_of_hash
    hashes = { "bcrypt" => BCRYPT, "apr1" => openssl("-apr1"), "sha256" => openssl("-5"), "sha512" => openssl("-6"),
               "sha" => "{SHA}#{[Digest::SHA1.digest(PASSWORD)].pack('m0')}" }
    server = serve_users(hashes, *TRUSTED)
    hashes.each_key.with_index do |name, number|
      client = { "X-Forwarded-For" => "192.0.2.#{number}" }
      ["", "Swordfish", "swordfish ", PASSWORD.reverse].each do |wrong|
        assert_equal 401, server.get("/", by(name, wrong).merge(client)).status, "#{name} #{wrong}"
      end
      assert_equal [name, "Basic"], env_of_user(server.get("/", by(name).merge(client))), name
    end
    assert_includes server.log, "passwords hashed with {SHA}"
    refute_match(/#{PASSWORD}|\$apr1\$|\$2y\$|\{SHA\}\S{20}/o, server.log)
  end

  def test_the_application_learns_who_it_is
    server = serve_users({ "j\u00fcrgen m" => BCRYPT })
    env = env_of(server.get("/", by("j\u00fcrgen m").merge("Remote-User" => "root", "Remote_User" => "root",
                                                           "Auth-Type" => "None")).body)
    assert_equal ["j\u00fcrgen m", "Basic", "root"], env.values_at("REMOTE_USER", "AUTH_TYPE", "HTTP_REMOTE_USER")
    assert_equal by("j\u00fcrgen m")["Authorization"], env["HTTP_AUTHORIZATION"]
  end

  def test_without_the_option_there_is_no_user
    server = serve(folder_with("config.ru" => EnvMirror::APP))
    env = env_of(server.get("/", by("ann")).body)
    assert_equal [nil, nil], env.values_at("REMOTE_USER", "AUTH_TYPE")
  end

  # The body comes while the password is being checked, or after it; and more requests behind it.
  def test_bodies_of_first_requests
    bodies = ["", "words", Random.new(1).bytes(3 * MIB)]
    users = bodies.each_index.to_h { |number| ["user#{number}", BCRYPT] }
    server = serve_all(app(users), "--basic-auth", @users, "--http2-cleartext", "on")
    bodies.each_with_index do |body, number|
      answer = server.request("POST", "/", by("user#{number}"), body)
      assert_equal Digest::SHA256.hexdigest(body), env_of(answer.body)["body"], "#{body.bytesize} bytes"
    end
  end

  def test_bodies_of_first_requests_over_other_protocols
    users = %w[fastcgi lsapi http2].to_h { |name| [name, BCRYPT] }
    server = serve_all(app(users), "--basic-auth", @users, "--http2-cleartext", "on")
    body = Random.new(1).bytes(100_000)
    with_each(server) do |connection, protocol|
      answer = connection.request("POST", "/", by(protocol), body)
      assert_equal Digest::SHA256.hexdigest(body), env_of(answer.body)["body"], protocol
    end
    Http2Client.tcp(server.port).greet.use do |client|
      client.send_request(1, "POST", "/", { "authorization" => by("http2")["Authorization"] }, "words")
      assert_equal Digest::SHA256.hexdigest("words"), env_of(client.answer(1).body)["body"]
    end
  end

  def test_requests_behind_one_whose_password_is_checked
    server = serve_users({ "ann" => BCRYPT })
    fields = "Host: a\r\nAuthorization: #{by('ann')['Authorization']}\r\n"
    post = "POST / HTTP/1.1\r\n#{fields}Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"
    without_user = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    answers = server.exchange("#{post}GET /a.txt HTTP/1.1\r\n#{fields}\r\n#{without_user}")
    assert_equal [200, 200, 401], answers.map(&:status)
    assert_equal [Digest::SHA256.hexdigest("one"), "a file\n"], [env_of(answers[0].body)["body"], answers[1].body]
  end

  # What is not read of a refused body is no request.
  def test_the_body_of_a_refused_request_is_none
    server = serve_users({ "ann" => BCRYPT })
    inner = "GET /a.txt HTTP/1.1\r\nHost: a\r\nAuthorization: #{by('ann')['Authorization']}\r\n\r\n"
    answers = server.exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{inner.bytesize}\r\n\r\n#{inner}")
    assert_equal [401], answers.map(&:status)
    assert_equal "close", answers.first["connection"]
  end

  def test_malformed_fields_are_refused
    server = serve_users({ "ann" => BCRYPT })
    right = by("ann")["Authorization"]
    ["Basic", "Basic ", "Basic *", "Bearer #{right.split.last}", "Digest username=\"ann\"", "#{right}, #{right}",
     "Basic #{['ann'].pack('m0')}", "Basic #{["ann:#{PASSWORD}\0"].pack('m0')}", "Basic #{'A' * 6000}"].each do |value|
      assert_equal 401, server.get("/", { "Authorization" => value }).status, value
    end
    twice = server.exchange("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: #{right}\r\nAuthorization: #{right}\r\n" \
                            "Connection: close\r\n\r\n").first
    assert_equal 401, twice.status
    assert_equal 200, server.get("/", { "Authorization" => right.sub("Basic", "bAsIC") }).status
  end

  def test_probes_and_challenges_need_none
    token = ".well-known/acme-challenge/aB3-_x"
    server = serve_users({ "ann" => BCRYPT }, "--probe-path", "/up", files: { "public/#{token}" => "proof" })
    assert_equal "proof", server.get("/#{token}").body
    assert_equal 200, server.get("/up").status
    assert_nil env_of(server.get("/up").body)["REMOTE_USER"]
    of_challenges = %w[../../a.txt %2e%2e/%2e%2e/a.txt a/b].map { |path| "/.well-known/acme-challenge/#{path}" }
    ["/up/", "/up?x", "/%75p", "//up", "/up/../a.txt", "/.well-known/a", *of_challenges].each do |path|
      assert_includes [400, 401], server.get(path).status, path
    end
    assert_equal 401, server.request("POST", "/up", {}, "x").status
  end

  def test_a_client_cannot_try_many_passwords
    server = serve_users({ "ann" => BCRYPT, "bob" => BCRYPT }, *TRUSTED)
    attacker = { "X-Forwarded-For" => "192.0.2.66" }
    ask = ->(fields) { server.get("/", fields.merge(attacker)) }
    assert_equal 200, ask.call(by("ann")).status
    answers = Array.new(12) { |number| ask.call(by("bob", "guess#{number}")) }
    assert_equal ([401] * 9) + ([429] * 3), answers.map(&:status)
    assert_includes 1..60, answers.last["retry-after"].to_i
    assert_nil answers.last["www-authenticate"], "browsers do not ask again"
    # Not even the right one; but who has logged in goes on.
    statuses = [by("bob"), by("ann"), {}].map { |fields| ask.call(fields).status }
    assert_equal [429, 200, 401], statuses
    assert_equal 200, server.get("/", by("bob").merge("X-Forwarded-For" => "192.0.2.7")).status, "another client"
  end

  # A hash that takes a while, many times at once: those who are known are served meanwhile.
  def test_a_flood_of_logins
    server = serve_users({ "ann" => PASSWORD.crypt("$2y$08$abcdefghijklmnopqrstuu") }, *TRUSTED)
    assert_equal 200, server.get("/", by("ann")).status
    connections = Array.new(150) do |number|
      HttpConnection.tcp(server.port).tap do |connection|
        connection.send_request("GET", "/", by("ann", "no").merge("X-Forwarded-For" => "192.0.2.#{number}"))
      end
    end
    assert_equal 200, server.get("/", by("ann")).status
    statuses = connections.map { |connection| connection.read_response(within: 30).status }
    assert_empty statuses - [401, 503]
    assert_includes statuses, 401
    assert_includes statuses, 503, "the number of waiting logins has a bound"
    assert_equal 200, server.get("/a.txt", by("ann").merge("X-Forwarded-For" => "192.0.2.1")).status
  ensure
    connections&.each(&:close)
  end

  def test_many_equal_logins_at_once
    server = serve_users({ "ann" => PASSWORD.crypt("$2y$08$abcdefghijklmnopqrstuu") })
    threads = Array.new(16) { Thread.new { server.get("/a.txt", by("ann")).status } }
    assert_equal [200], threads.map(&:value).uniq
  end

  def test_over_every_protocol
    server = serve_all(app("ann" => BCRYPT), "--basic-auth", @users, "--http2-cleartext", "on")
    with_each(server) do |connection, protocol|
      refused = connection.get("/")
      assert_equal [401, true], [refused.status, refused["www-authenticate"].start_with?("Basic realm=")], protocol
      assert_equal %w[ann Basic], env_of_user(connection.get("/", by("ann"))), protocol
    end
    Http2Client.tcp(server.port).greet.use do |client|
      client.send_request(1, "GET", "/a.txt")
      client.send_request(3, "GET", "/a.txt", { "authorization" => by("ann")["Authorization"] })
      refused, served = [1, 3].map { |stream| client.answer(stream) }
      refute_includes refused.body, "a file"
      assert_equal [200, "a file\n"], [served.status, served.body]
    end
  end

  def test_the_access_log_names_the_user
    log = File.join(folder_with, "access.log")
    server = serve_users({ "a b\"c" => BCRYPT }, "--access-log", log)
    server.get("/x", by("a b\"c"))
    server.get("/y")
    wait_for("the access log") { File.exist?(log) && File.read(log).include?('"GET /y ') }
    lines = File.read(log)
    assert_match(%r{^127\.0\.0\.1 - a\\x20b\\x22c \[.*"GET /x HTTP/1.1" 200 }, lines)
    assert_match(%r{^127\.0\.0\.1 - - \[.*"GET /y HTTP/1.1" 401 }, lines)
  end
end
