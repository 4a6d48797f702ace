# frozen_string_literal: true

require_relative "../../support/acme_test_case"
require_relative "../../support/checkpoints"
require_relative "../../support/load"

# Automatic certificates: an authority issues them to a server that has none.
class AcmeTest < AcmeTestCase
  def test_a_server_without_certificates_gets_one
    @pebble.start
    began = Deadline.now
    server = serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) == "https #{HOST}:#{@https}" }
    assert_operator Deadline.now - began, :<, 10
    domain = server.status["tls"]["domains"].first
    assert_equal [HOST, 0, nil], domain.values_at("name", "failures", "problem")
    assert_operator domain["next_at"], :<, domain["expires_at"]
    assert_equal([0o700, 0o600], [@state, kept(HOST)].map { |path| File.stat(path).mode & 0o777 })
    assert_equal [308, "https://#{HOST}:#{@https}/a?b"], redirection
  end

  # Where there is no address for HTTP, the authority looks at the one for HTTPS (RFC 8737).
  def test_a_server_without_an_address_for_http
    @pebble = AcmeAuthority.new(@authority_folder, http_port: 1, tls_port: @https).start
    serve(folder_with("config.ru" => APP), "--bind", "tls://127.0.0.1:#{@https}", *acme_options(HOST),
          bind: File.join(folder_with, "app.sock"))
    wait_for("a certificate") { https_body(HOST) }
    assert_raises(OpenSSL::SSL::SSLError) { tls_socket(@https, host: HOST, alpn: ["acme-tls/1"], verify: false) }
  end

  def test_what_was_obtained_is_served_again_without_the_authority
    @pebble.start
    serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) }
    first = serial_for(@https, HOST)
    root = @pebble.root
    stop_servers
    @pebble.stop
    server = serve_domains(HOST)
    assert_equal "https #{HOST}:#{@https}", https_body(HOST, root)
    assert_equal first, serial_for(@https, HOST)
    assert_nil server.status["tls"]["domains"].first["problem"]
  end

  def test_an_authority_that_is_down
    server = serve_domains(HOST)
    domain = problem_of(server)
    assert_match(%r{cannot reach https://localhost:\d+/dir: .*refused}i, domain["problem"])
    assert_match(/Let this machine reach that address/, domain["remedy"])
    assert_includes 55..80, domain["next_at"] - Time.now.to_i
    output, = HighballServer.run("status", *server.which)
    assert_match(/domain +#{HOST}: has no certificate; .*cannot reach/, output)
    assert_match(/no certificate obtained.*cannot reach/m, server.log)
    assert_equal 308, redirection.first
  end

  def test_an_authority_that_finds_another_server
    long
    @pebble = AcmeAuthority.new(@authority_folder, http_port: 1).start
    domain = problem_of(serve_domains(HOST), within: 30)
    assert_match(/the authority says: .*connection/i, domain["problem"])
    assert_match(/port 80 of #{HOST}/, domain["remedy"])
  end

  def test_renewal_under_load
    long
    @pebble = AcmeAuthority.new(@authority_folder, http_port: @http, valid_for: VALID_FOR).start
    server = serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) }
    serials = [serial_for(@https, HOST)]
    clients = HttpsEnd.new(@https, ->(port, &block) { connect_tls(port, host: HOST, verify: false, &block) })
    load = Load.during(clients) do
      wait_for("two renewals", within: 60) do
        serials |= [serial_for(@https, HOST)]
        serials.length > 2
      end
    end
    assert_equal [200], load.map(&:result).uniq
    assert_equal 0, server.status["tls"]["domains"].first["failures"]
  end

  def test_the_last_certificate_serves_on_while_the_authority_is_down
    long
    @pebble = AcmeAuthority.new(@authority_folder, http_port: @http, valid_for: VALID_FOR).start
    server = serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) }
    serial = serial_for(@https, HOST)
    @pebble.stop
    domain = wait_for("a failure", within: 60) do
      server.status["tls"]["domains"].first.then { |one| one if one["failures"].positive? }
    end
    assert_match(/cannot reach/, domain["problem"])
    assert_equal serial, serial_for(@https, HOST)
    assert_match(/domain +#{HOST}: has a certificate; /, HighballServer.run("status", *server.which).first)
  end

  # The next process keeps the certificates when the one before has ended, and nothing is wrong until then.
  def test_a_hot_restart
    @pebble.start
    server = serve_domains(HOST, extra: %w[--drain-timeout 1s])
    wait_for("a certificate") { https_body(HOST) }
    serial = serial_for(@https, HOST)
    highball("upgrade", *server.which, within: 60)
    wait_for("the next one's turn") { server.status["tls"]["domains"].first["next_at"] }
    assert_equal serial, serial_for(@https, HOST)
    assert_nil server.status["tls"]["domains"].first["problem"]
    refute_includes server.log, "another process keeps"
  end

  def test_names_that_no_authority_looks_for
    { "*.blog.test" => "stands for many names", "*.*.test" => "not a host name",
      "localhost" => "not the name of a site",
      "10.0.0.1" => "not the name of a site" }.each do |name, words|
      output, ended = HighballServer.run("serve", "--domain", name, folder_with("config.ru" => APP))
      assert_equal [false, true], [ended.success?, output.include?(words)], output
    end
  end

  def test_what_is_kept_is_damaged
    long
    @pebble.start
    serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) }
    stop_servers
    ["", File.read(kept(HOST))[0, 300], "#{'x' * 1000}\n"].each do |content|
      File.write(kept(HOST), content)
      server = serve_domains(HOST)
      wait_for("another certificate") { https_body(HOST) }
      assert_match(/cannot use the stored certificate/, server.log)
      stop_servers
    end
  end

  def test_two_servers_with_one_folder
    long
    @pebble.start
    serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) }
    binds = ["--bind", "tls://127.0.0.1:0", "--bind", "127.0.0.1:0"]
    server = serve(folder_with("config.ru" => APP), *binds, *acme_options(HOST))
    wait_for("a word about it") { server.log.include?("another process keeps the certificates in #{@state}") }
    assert_equal serial_for(@https, HOST), serial_for(tls_port(server), HOST), "it serves what is there"
  end

  # Whenever a server is killed, the next one is right: it has a certificate soon, and the old one until then.
  %w[attempt_written attempt_synced attempt_renamed account_written account_synced account_renamed account_kept ordered
     shown proven issued certificate_written certificate_synced certificate_renamed kept].each do |step|
    define_method("test_killed_at_#{step}") do
      long
      @pebble.start
      checkpoints = Checkpoints.new(folder_with)
      checkpoints.ask("acme.#{step}")
      server = serve_domains(HOST, env: checkpoints.environment)
      HighballServer.kill(checkpoints.wait_until_reached("acme.#{step}"))
      server.wait
      @servers.delete(server).finish
      serve_domains(HOST)
      wait_for("a certificate", within: 20) { https_body(HOST) }
      assert_equal [kept(HOST)], Dir[File.join(@state, "certificates", "*", "*")]
    end
  end

  # A server that ends during each attempt would use up what the authority permits.
  def test_a_server_that_is_killed_again_and_again_waits
    long
    @pebble.start
    checkpoints = Checkpoints.new(folder_with)
    3.times do
      checkpoints.ask("acme.ordered")
      server = serve_domains(HOST, env: checkpoints.environment)
      HighballServer.kill(checkpoints.wait_until_reached("acme.ordered"))
      server.wait
      @servers.delete(server).finish
    end
    domain = problem_of(serve_domains(HOST))
    assert_match(/the server has ended during each of the last 3 attempts/, domain["problem"])
    assert_includes 40..80, domain["next_at"] - Time.now.to_i
  end
end
