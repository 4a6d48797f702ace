# frozen_string_literal: true

require "digest"
require_relative "../../support/client_certificates_test_case"

# Applications whose clients show certificates, issued by OpenSSL: who gets in, and what the application learns.
class ClientCertificatesTest < ClientCertificatesTestCase
  VERSIONS = [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION].freeze

  # --- who gets in, and what the application learns

  def test_the_application_learns_who_the_client_is
    port = tls_port(serve_with)
    VERSIONS.each do |version|
      facts = facts_of(port, @alice, min: version, max: version)
      assert_equal({ "SSL_CLIENT_VERIFY" => "SUCCESS", "SSL_CLIENT_CERT" => @alice.pem,
                     "SSL_CLIENT_S_DN" => "CN=alice", "SSL_CLIENT_I_DN" => "CN=Clients",
                     "SSL_CLIENT_M_SERIAL" => @alice.certificate.serial.to_s(16),
                     "SSL_CLIENT_FINGERPRINT_SHA256" => Digest::SHA256.hexdigest(@alice.certificate.to_der),
                     "puma.peercert" => @alice.certificate.subject.to_a.to_s }, facts)
    end
    assert_equal "static", get(port, "/a.txt", @alice).body
  end

  def test_a_required_certificate_keeps_all_others_out
    server = serve_with
    port = tls_port(server)
    strangers.each do |name, pair|
      VERSIONS.each { |version| assert_refused(port, pair, "#{name}, #{version}", min: version, max: version) }
    end
    wait_for("the log") { server.log.include?("has not shown a certificate that is valid (`tls_client_ca`)") }
    assert_equal 1, server.log.scan("a connection was closed").size, "once a minute"
    assert_equal strangers.size * VERSIONS.size, server.status.dig("tls", "failed_handshakes")
    assert_equal "SUCCESS", facts_of(port, @alice)["SSL_CLIENT_VERIFY"]
  end

  def test_an_optional_certificate_has_to_be_valid
    server = serve_with("--tls-client-auth", "optional")
    port = tls_port(server)
    VERSIONS.each do |version|
      assert_equal({ "SSL_CLIENT_VERIFY" => "NONE" }, facts_of(port, nil, min: version, max: version))
    end
    assert_equal "CN=alice", facts_of(port, @alice)["SSL_CLIENT_S_DN"]
    strangers.compact.each { |name, pair| assert_refused(port, pair, name) }
    assert_equal({ "SSL_CLIENT_VERIFY" => "NONE" }, JSON.parse(server.get("/").body), "without TLS")
  end

  def test_an_authority_below_another
    below = TlsFiles.authority("Department", by: @clients)
    bob = client("bob", by: below)
    port = tls_port(serve_with)
    assert_refused(port, bob, "who does not show the way to its authority")
    context = tls_context
    context.add_certificate(bob.certificate, bob.key, [below.certificate])
    socket = OpenSSL::SSL::SSLSocket.new(Socket.tcp("127.0.0.1", port), context)
    socket.sync_close = true
    socket.hostname = "localhost"
    answer = HttpConnection.new(socket.connect).use { |client| client.get("/", { "Host" => "localhost" }) }
    assert_equal "CN=bob", JSON.parse(answer.body)["SSL_CLIENT_S_DN"]
  end

  def test_http2
    port = tls_port(serve_with)
    over_http2(port, @alice) do |client|
      [1, 3].each do |stream|
        assert_equal "CN=alice", JSON.parse(client.ask(stream, "GET", "/").body)["SSL_CLIENT_S_DN"]
      end
    end
    assert_raises(*REFUSED) { over_http2(port, nil) { |client| client.ask(1, "GET", "/") } }
  end

  def test_without_the_option_nothing_is_asked_and_nothing_is_known
    server = serve_tls(@folder)
    assert_empty facts_of(tls_port(server), @alice)
  end

  # --- what a client could try

  def test_a_header_field_proves_nothing
    forged = { "SSL_CLIENT_VERIFY" => "SUCCESS", "SSL-Client-Cert" => @alice.pem.delete("\n"),
               "Ssl-Client-S-Dn" => "CN=root", "puma.peercert" => "x" }
    port = tls_port(serve_with("--tls-client-auth", "optional"))
    facts = facts_of(port, nil, fields: forged)
    assert_equal({ "SSL_CLIENT_VERIFY" => "NONE" }, facts.reject { |name, _| name.start_with?("HTTP_") })
    facts = facts_of(port, @alice, fields: forged)
    assert_equal %w[SUCCESS CN=alice], facts.values_at("SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN")
    facts = facts_of(tls_port(serve_tls(@folder)), nil, fields: forged)
    assert_empty(facts.reject { |name, _| name.start_with?("HTTP_") })
  end

  def test_without_tls_there_is_no_way_around
    server = serve_with("--health-path", "/up", ready: "/up")
    ["/", "/a.txt"].each { |path| assert_equal 403, server.get(path).status, path }
    assert_includes server.get("/").body, "a client certificate is required, over HTTPS"
    assert_equal 200, server.get("/up").status
    socket = File.join(folder_with, "blog.sock")
    other = serve_with("--bind", "unix:#{socket}")
    answer = UNIXSocket.open(socket) do |client|
      client.write("GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n")
      client.read
    end
    assert_match(%r{\AHTTP/1\.1 403 }, answer)
    assert_predicate other, :running?
  end

  # Its answers are for its clients alone, whatever it says about storing them.
  def test_nothing_is_stored_for_other_clients
    port = tls_port(serve_with("--tls-client-auth", "optional", "--cache", "1m"))
    subjects = [@alice, client("bob"), nil].map { |pair| facts_of(port, pair)["SSL_CLIENT_S_DN"] }
    assert_equal ["CN=alice", "CN=bob", nil], subjects
  end

  def test_a_large_certificate_is_refused_and_a_long_one_arrives
    port = tls_port(serve_with)
    long = client("long", comment: 5_000)
    assert_equal long.pem, facts_of(port, long, fields: { "X-Long" => "x" * 60_000 })["SSL_CLIENT_CERT"]
    assert_refused(port, client("large", comment: 9_000), "large")
  end

  # --- sessions

  def test_a_resumed_session_has_the_certificate_that_it_began_with
    port = tls_port(serve_with)
    VERSIONS.each do |version|
      session = session_after_request(port, client: @alice, max: version)
      facts, is_resumed = resume(port, session, max: version)
      assert_equal [true, "CN=alice"], [is_resumed, facts["SSL_CLIENT_S_DN"]], version.to_s
    end
  end

  # The client of a session that began without a certificate has to show one now.
  def test_sessions_begin_again_when_the_rule_changes
    server = serve_configured("tls_client_ca = '#{@file}'\ntls_client_auth = 'optional'\n")
    port = tls_port(server)
    without = VERSIONS.to_h { |version| [version, session_after_request(port, max: version)] }
    with = VERSIONS.to_h { |version| [version, session_after_request(port, client: @alice, max: version)] }
    configure("tls_client_ca = '#{@file}'\n")
    server.signal("HUP")
    wait_for("the new rule") { refused?(port, nil) }
    VERSIONS.each do |version|
      assert_raises(*REFUSED, version.to_s) { resume(port, without[version], max: version) }
      assert_raises(*REFUSED, version.to_s) { resume(port, with[version], max: version) }
    end
    File.write(@file, TlsFiles.authority("Others").pem)
    session = VERSIONS.to_h { |version| [version, session_after_request(port, client: @alice, max: version)] }
    server.signal("HUP")
    wait_for("the other authority") { refused?(port, @alice) }
    VERSIONS.each { |version| assert_raises(*REFUSED) { resume(port, session[version], max: version) } }
  end

  def test_a_certificate_that_expires_ends_its_sessions
    port = tls_port(serve_with)
    brief = client("brief", to: Time.now + 6)
    sessions = VERSIONS.to_h { |version| [version, session_after_request(port, client: brief, max: version)] }
    wait_for("the end of the certificate", within: 20) { refused?(port, brief) }
    VERSIONS.each { |version| assert_raises(*REFUSED) { resume(port, sessions[version], max: version) } }
  end

  def test_sessions_go_on_after_a_hot_restart
    server = serve_with("--drain-timeout", "1s")
    port = tls_port(server)
    session = session_after_request(port, client: @alice)
    highball("upgrade", *server.which, within: 60)
    facts, is_resumed = resume(port, session)
    assert_equal [true, "CN=alice"], [is_resumed, facts["SSL_CLIENT_S_DN"]]
  end

  # --- the file

  def test_an_unusable_file_ends_the_start
    key = File.join(folder_with, "client.key")
    File.write(key, @alice.key_pem)
    File.mkfifo(pipe = File.join(folder_with, "clients"))
    { "/no/such.pem" => %r{cannot read /no/such\.pem: .*Look at the path in `tls_client_ca`},
      File.join(folder_with("empty.pem" => "\n"), "empty.pem") => /empty\.pem is empty: write the certificates/,
      key => /client\.key has no certificate, but a private key/, @folder => /is not a regular file/,
      pipe => /is not a regular file/ }
      .each do |file, message|
        output = highball_fails("serve", *tls_options([pair]), "--tls-client-ca", file, @folder)
        assert_match message, output
      end
  end

  def test_an_unusable_file_later_changes_nothing
    server = serve_with
    port = tls_port(server)
    File.write(@file, "")
    server.signal("HUP")
    wait_for("the report") { server.status.dig("tls", "problem")&.include?("clients.pem is empty") }
    assert_equal "CN=alice", facts_of(port, @alice)["SSL_CLIENT_S_DN"]
    assert_refused(port, nil, "without a certificate")
    others = TlsFiles.authority("Others")
    File.write(@file, @clients.pem + others.pem)
    server.signal("HUP")
    bob = client("bob", by: others)
    wait_for("the other authority") { !refused?(port, bob) }
    assert_nil server.status.dig("tls", "problem")
    assert_equal(%w[CN=alice CN=bob], [@alice, bob].map { |one| facts_of(port, one)["SSL_CLIENT_S_DN"] })
  end

  # --- several applications

  def test_each_application_has_its_authorities
    port = tls_port(serve_sites)
    bob = client("bob", by: @others)
    expected = { ["a.test", @alice] => "CN=alice", ["b.test", bob] => "CN=bob", ["open.test", nil] => nil,
                 ["open.test", @alice] => nil }
    expected.each do |(host, client), subject|
      facts = facts_of(port, client, host: host)
      subject ? assert_equal(subject, facts["SSL_CLIENT_S_DN"], host) : assert_empty(facts, host)
    end
    [["a.test", bob], ["b.test", @alice], ["a.test", nil], ["b.test", nil]].each do |host, pair|
      assert_refused(port, pair, host, host: host)
    end
  end

  # A client asks for one host in its handshake, and for another one in its request.
  def test_a_connection_for_one_application_reaches_no_other
    port = tls_port(serve_sites)
    bob = client("bob", by: @others)
    expected = { ["open.test", nil, "a.test"] => 421, ["a.test", @alice, "b.test"] => 421,
                 ["b.test", bob, "a.test"] => 421, ["unknown.test", nil, "a.test"] => 421,
                 [nil, nil, "a.test"] => 421, [nil, nil, "A.test."] => 421,
                 ["a.test", @alice, "A.TEST:443"] => 200, ["a.test", @alice, "open.test"] => 200 }
    expected.each do |(name, pair, host), status|
      assert_equal status, get(port, "/", pair, host: name, fields: { "Host" => host }, verify: false).status,
                   [name, host].inspect
      over_http2(port, pair, host: name) do |client|
        assert_equal status, client.ask(1, "GET", "/", {}, authority: host).status, [name, host, "HTTP/2"].inspect
      end
    end
    facts = JSON.parse(get(port, "/", @alice, host: "a.test", fields: { "Host" => "open.test" }).body)
    assert_empty facts, "it knows no authorities"
  end

  def test_an_application_without_its_authorities_is_reached_by_no_client
    server = serve_sites { File.write(@file, "") }
    port = tls_port(server)
    assert_match(/no client is let in.*\n.*clients\.pem is empty/, server.log)
    [@alice, nil].each { |pair| assert_refused(port, pair, "a", host: "a.test") }
    assert_equal 421, get(port, "/", nil, host: "open.test", fields: { "Host" => "a.test" }).status
    assert_equal 200, get(port, "/", nil, host: "open.test").status
  end

  def test_one_host_has_one_rule
    file = sites("a.test" => "tls_client_ca = '#{@file}'",
                 "b.test" => "hosts = ['a.test']\nprefix = '/b'\ntls_client_ca = '/b.pem'")
    output = highball_fails("serve", "-e", "production", "-c", file)
    assert_match(/are both reached at a\.test, and ask its clients for different certificates/, output)
  end
end
