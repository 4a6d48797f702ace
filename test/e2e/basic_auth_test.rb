# frozen_string_literal: true

require "open3"
require_relative "../support/gateway_test_case"
require_relative "../support/http2_client"
require_relative "../support/env_mirror"

# Applications for users with a password: no other client reaches their files or Ruby.
class BasicAuthTest < GatewayTestCase
  include EnvMirror

  PASSWORD = "swordfish"
  BCRYPT = PASSWORD.crypt("$2y$04$abcdefghijklmnopqrstuu").freeze
  TRUSTED = %w[--trusted-proxies 127.0.0.1].freeze

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
    assert_includes server.log, "passwords that are hashed with {SHA}"
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

  def test_a_changed_file_counts_soon
    server = serve_users({ "ann" => BCRYPT, "bob" => BCRYPT }, *TRUSTED)
    assert_equal [200, 200, 401], statuses(server, %w[ann bob eve])
    write_users("ann" => BCRYPT, "eve" => BCRYPT)
    wait_for("the new user") { statuses(server, %w[eve]) == [200] }
    assert_equal [200, 401], statuses(server, %w[ann bob]), "what was known is forgotten"
    write_users("ann" => "other".crypt("$2y$04$abcdefghijklmnopqrstuu"))
    wait_for("the new password") { statuses(server, %w[ann], "other") == [200] }
    assert_equal [401], statuses(server, %w[ann])
  end

  def test_a_file_that_cannot_be_used_refuses_everything
    server = serve_users({ "ann" => BCRYPT })
    assert_equal 200, server.get("/", by("ann")).status
    { "ann:a-plain-secret\n" => "line 1 has a password that is plain text", "# empty\n" => "it has no user",
      "ann:#{BCRYPT}\nbob-is-a-secret\n" => "line 2 is not NAME:HASH",
      "ann:#{BCRYPT.sub('$04$', '$20$')}" => "a bcrypt hash with a cost above 14" }.each do |text, problem|
      File.write(@users, text)
      wait_for(problem) { server.get("/", by("ann")).status == 500 && server.log.include?(problem) }
      assert_equal [401, 500], [server.get("/a.txt").status, server.get("/a.txt", by("ann")).status]
    end
    assert_includes server.log, "htpasswd -B"
    refute_match(/secret/, server.log)
    write_users("ann" => BCRYPT)
    wait_for("the file") { server.get("/", by("ann")).status == 200 }
    assert_includes server.log, "can be used again"
  end

  def test_what_is_no_file_refuses_everything_and_holds_up_nothing
    server = serve_users({ "ann" => BCRYPT })
    { "it does not exist" => -> {}, "it is a named pipe" => -> { File.mkfifo(@users) },
      "it is a folder" => -> { Dir.mkdir(@users) }, "it is a device" => -> { File.symlink("/dev/zero", @users) },
      "the kernel makes up" => -> { File.symlink("/proc/version", @users) } }.each do |problem, replace|
      FileUtils.rm_rf(@users)
      replace.call
      wait_for(problem) { server.get("/", by("ann")).status == 500 && server.log.include?(problem) }
      assert_equal 401, server.get("/").status
    end
    FileUtils.rm_rf(@users)
    write_users("ann" => BCRYPT)
    wait_for("the file") { server.get("/", by("ann")).status == 200 }
  end

  def test_a_missing_file_is_reported_before_a_request_needs_it
    server = serve_users(nil)
    wait_for("the log") { server.log.include?("(basic_auth) cannot be used") }
    assert_equal 500, server.get("/", by("ann")).status
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
    assert_includes statuses, 503, "there is a bound on those that wait"
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
    assert_match(%r{^127\.0\.0\.1 - a\\x20b\\"c \[.*"GET /x HTTP/1.1" 200 }, lines)
    assert_match(%r{^127\.0\.0\.1 - - \[.*"GET /y HTTP/1.1" 401 }, lines)
  end

  def test_the_configuration_is_reloaded
    folder = app("ann" => BCRYPT)
    file = File.join(folder, "config/highball.toml")
    FileUtils.mkdir_p(File.dirname(file))
    File.write(file, "threads = 2\n")
    server = serve(folder)
    assert_equal 200, server.get("/").status
    File.write(file, "threads = 2\nbasic_auth = '#{@users}'\nbasic_auth_realm = 'Staging of the blog'\n")
    server.signal("HUP")
    wait_for("the reload") { server.get("/").status == 401 }
    assert_includes server.get("/")["www-authenticate"], '"Staging of the blog"'
    assert_equal 200, server.get("/", by("ann")).status
    File.write(file, "threads = 2\n")
    server.signal("HUP")
    wait_for("the reload") { server.get("/").status == 200 }
  end

  private

  APP = <<~RUBY
    require "json"
    count = -1
    run lambda { |env|
      count += 1
      strings = env.select { |_, value| value.is_a?(String) }
      [200, { "content-type" => "application/json" }, [strings.merge("requests before" => count).to_json]]
    }
  RUBY
  private_constant :APP

  # The folder of an application, beside a file with these users.
  def app(users, files = {})
    @users = File.join(folder_with, "htpasswd")
    write_users(users) if users
    folder_with({ "config.ru" => APP, "public/a.txt" => "a file\n" }.merge(files))
  end

  def serve_users(users, *options, files: {})
    serve(app(users, files), *options, "--basic-auth", @users)
  end

  # As an editor does: the server never sees half of it.
  def write_users(users)
    File.write("#{@users}.new", users.map { |name, hash| "#{name}:#{hash}\n" }.join)
    File.rename("#{@users}.new", @users)
  end

  def by(name, password = PASSWORD) = { "Authorization" => "Basic #{["#{name}:#{password}"].pack('m0')}" }

  # What users get who each come from another address.
  def statuses(server, names, password = PASSWORD)
    names.map do |name|
      address = "198.51.100.#{@address = @address.to_i + 1}"
      server.get("/", by(name, password).merge("X-Forwarded-For" => address)).status
    end
  end

  def env_of_user(answer) = env_of(answer.body).values_at("REMOTE_USER", "AUTH_TYPE")

  def openssl(kind) = Open3.capture2("openssl", "passwd", kind, "-stdin", stdin_data: "#{PASSWORD}\n").first.chomp
end
