# frozen_string_literal: true

require_relative "../../support/tls_test_case"
require_relative "../../support/browser"

# `highball --https`: certificates for names of this machine, by an authority that its user's clients trust.
class HttpsDevelopmentTest < TlsTestCase
  NAMES = %w[localhost blog.localhost acme.blog.localhost 127.0.0.1 ::1].freeze
  FORCE_SSL = "\nRails.application.config.force_ssl = true\n"

  def setup
    super
    @data = folder_with
    @folder = File.join(@data, "highball/authority")
    @file = File.join(@folder, "authority.pem")
  end

  def test_names_of_this_machine
    server = serve_https
    NAMES.each { |name| assert_equal 200, status_at(server, name), name }
    issuer = server.status.dig("tls", "certificates", 0)
    assert_equal [@file, %w[localhost *.localhost 127.0.0.1 ::1]], issuer.values_at("file", "hosts")
    env = JSON.parse(fetch(server, "blog.localhost").body)
    assert_equal %w[https on], env.values_at("rack.url_scheme", "HTTPS")
    serials = NAMES.take(3).map { |name| serial_for(server.port, name) }
    assert_equal serials, serials.uniq
  end

  # As a developer does it: what curl prints shows that it has verified the certificate.
  def test_with_curl
    server = serve_https
    %w[localhost blog.localhost].each do |name|
      format = "%{http_code} %{http_version} %{ssl_verify_result}" # rubocop:disable Style/FormatStringToken
      command = ["curl", "-sS", "--cacert", @file, "-o", File::NULL, "-w", format, "https://#{name}:#{server.port}/"]
      assert_equal "200 2 0", IO.popen(command, err: %i[child out], &:read)
    end
  end

  def test_the_authority_stays_and_is_private
    server = serve_https
    assert_match(/created a local certificate authority for localhost.*#{@file}/m, server.log)
    ["update-ca-certificates", "certutil -d sql:$HOME/.pki/nssdb -A", "curl --cacert #{@file}", "to remove it: "]
      .each { |words| assert_includes server.log, words }
    before = File.binread(@file)
    server.stop
    server = serve_https
    assert_equal before, File.binread(@file)
    assert_equal 200, status_at(server, "localhost")
    assert_match(/local certificate authority for localhost; browsers must trust it once.*#{@file}/m, server.log)
    modes = [@folder, "#{@folder}/authority.key"].map { |path| File.stat(path).mode & 0o777 }
    assert_equal [0o700, 0o600], modes
    output, = HighballServer.run("doctor", "--https", server.app, env: env)
    assert_match(/ok +certificate: #{@file} issues those for localhost/, output)
  end

  def test_servers_that_start_at_the_same_time_have_one
    servers = concurrently(3) { HighballServer.start(app, "--https", environment: "development", env: env) }
    @servers.concat(servers)
    servers.each { |server| assert_equal 200, status_at(server, "localhost") }
    assert_equal(1, servers.count { |server| server.log.include?("created a local certificate authority") })
    assert_equal ["authority"], Dir.children(File.dirname(@folder))
  end

  # Its holder can take part in nothing but this machine's connections with itself.
  def test_a_stolen_key_is_of_little_use
    serve_https
    stolen = TlsFiles::Pair.new(OpenSSL::X509::Certificate.new(File.read(@file)),
                                OpenSSL::PKey.read(File.read("#{@folder}/authority.key")))
    accepted = lambda do |*names, **options|
      pair = TlsFiles.issue(names, by: stolen, **options) { |one, factory| add_address(one, factory, names) }
      store = OpenSSL::X509::Store.new.tap { |all| all.add_file(@file) }
      store.purpose = OpenSSL::X509::PURPOSE_SSL_SERVER
      store.verify(pair.certificate) ? "ok" : store.error_string
    end
    assert_equal "ok", accepted.call("any.localhost")
    ["example.com", "localhost.example.com", "IP:192.168.0.1", "IP:127.0.0.2"].each do |name|
      assert_equal "permitted subtree violation", accepted.call(name), name
    end
    assert_equal "permitted subtree violation", accepted.call("any.localhost", "example.com")
  end

  # It only has what the authority has issued for it.
  def test_the_server_has_not_the_key_of_the_authority
    server = serve_https
    served = tls_socket(server.port, verify: false).peer_cert_chain
    assert_equal 2, served.length
    refute_equal OpenSSL::X509::Certificate.new(File.read(@file)).public_key.to_pem, served.last.public_key.to_pem
  end

  def test_other_names_get_the_certificate_of_this_machine
    server = serve_https
    tls = tls_socket(server.port, host: "example.com", verify: false)
    assert_match(/DNS:localhost, IP Address:127.0.0.1/, tls.peer_cert.extensions.join("\n"))
  ensure
    tls&.close
  end

  def test_plain_http_at_the_same_port
    server = serve_https
    host = "blog.localhost:#{server.port}"
    answer = HttpConnection.tcp(server.port).use { |client| client.get("/posts?page=2", { "Host" => host }) }
    assert_equal [307, "https://#{host}/posts?page=2"], [answer.status, answer["location"]]
  end

  def test_browsers_do_not_remember_https_for_every_port
    server = serve_https("--hsts", "365d")
    assert_nil fetch(server, "localhost")["strict-transport-security"]
  end

  def test_it_is_for_development_alone
    certificate, key, = certificate_for("localhost")
    { %w[-e production] => "`https` is for development",
      ["--tls-certificate", certificate, "--tls-key", key] => "leave one of them out" }.each do |options, words|
      output = highball_fails("--https", *options, app, env: env)
      assert_includes output, words
      assert_includes output, "tls_certificate"
    end
    output, = HighballServer.run("--bind", "tls://127.0.0.1:0", app, env: env)
    assert_includes output, "in development, --https makes certificates"
    refute_path_exists @folder
  end

  def test_an_authority_that_cannot_be_used_is_not_replaced
    serve_https.stop
    key = "#{@folder}/authority.key"
    { -> { File.chmod(0o644, key) } => "authority.key: it is not a file of this user's, or open to others",
      -> { File.write(key, "") && File.chmod(0o600, key) } => "it is damaged" }.each do |damage, words|
      damage.call
      output = highball_fails("--https", app, env: env)
      assert_includes output, words
      assert_includes output, "rm -r #{@folder}"
    end
  end

  # Root's key goes nowhere that another user could have led it to.
  def test_root_is_not_led_elsewhere
    skip "only root is asked to" unless Process.uid.zero?
    victim = folder_with
    File.symlink(victim, File.join(@data, "link"))
    File.lchown(65_534, 65_534, File.join(@data, "link"))
    data = folder_with.tap { |path| File.chown(65_534, 65_534, path) }
    [data, File.join(@data, "link")].each do |place|
      output = highball_fails("--https", app, env: { "XDG_DATA_HOME" => place })
      assert_match(/cannot be kept in #{place}.* belongs to nobody, and Highball runs as root/, output)
    end
    assert_empty Dir.children(victim) + Dir.children(data)
  end

  def test_a_blog_in_a_browser
    blog = copy_of_example("blog")
    File.write(File.join(blog, "config/environments/development.rb"), FORCE_SSL, mode: "a")
    server = serve(blog, "--https", environment: "development", env: env)
    Browser.open(home: home_that_trusts(server)) do |browser|
      %w[localhost blog.localhost].each { |host| use_the_blog(browser, "https://#{host}:#{server.port}") }
      browser.visit "http://localhost:#{server.port}/posts/new"
      browser.find "#post_title"
      assert_equal "https://localhost:#{server.port}/posts/new", browser.driver.current_url
    end
  end

  private

  def app = @app ||= folder_with("config.ru" => ENV_APP)

  def env = { "XDG_DATA_HOME" => @data }

  def serve_https(*options) = serve(app, "--https", *options, environment: "development", env: env)

  # The authority of the servers, for clients (see ServesTls).
  def authority
    File.exist?(@file) ? TlsFiles::Pair.new(OpenSSL::X509::Certificate.new(File.read(@file))) : super
  end

  # Of an address, clients name no host, and look for the address in the certificate.
  def fetch(server, name)
    socket = tls_socket(server.port, host: (name unless name.match?(/[\d:]\z/)))
    socket.post_connection_check(name)
    HttpConnection.new(socket).use { |client| client.get("/", { "Host" => name.include?(":") ? "[#{name}]" : name }) }
  end

  def status_at(server, name) = fetch(server, name).status

  def add_address(certificate, factory, names)
    return unless names.first.start_with?("IP:")

    kept = certificate.extensions.reject { |one| one.oid == "subjectAltName" }
    certificate.extensions = kept + [factory.create_extension("subjectAltName", names.join(","))]
  end

  # The folder of a user whose Chromium trusts the authority, by the command that the log shows.
  def home_that_trusts(server)
    home = folder_with
    FileUtils.mkdir_p(File.join(home, ".pki/nssdb"))
    assert system("certutil", "-d", "sql:#{home}/.pki/nssdb", "-N", "--empty-password")
    command = server.log[/Chrome trust it, run this command\n +command: (certutil .*?)(?: \(Debian|$)/, 1]
    assert system({ "HOME" => home }, command), command
    home
  end

  def use_the_blog(browser, url)
    browser.visit "#{url}/posts/new"
    browser.fill "#post_title", "Night train"
    browser.fill "#post_body", "It left on time."
    browser.attach "#post_file", attachment
    browser.click "input[type=submit]"
    browser.see "Published."
    protocol = browser.driver.execute_script("return performance.getEntriesByType('navigation')[0].nextHopProtocol")
    assert_equal ["h2", true], [protocol, browser.driver.execute_script("return isSecureContext")]
    browser.click "#file"
    assert_equal Random.new(1).bytes(300_000), File.binread(browser.downloaded("timetable.bin", 300_000))
    browser.visit "#{url}/echo"
    browser.find "#state", text: "connected"
    browser.fill "#text", "over wss"
    browser.click "#echo button"
    browser.find "#echoes li", text: "over wss"
    FileUtils.rm(File.join(browser.downloads, "timetable.bin"))
  end

  def attachment
    @attachment ||= File.join(folder_with("timetable.bin" => Random.new(1).bytes(300_000)), "timetable.bin")
  end
end
