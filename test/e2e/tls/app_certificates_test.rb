# frozen_string_literal: true

require_relative "../../support/many_apps_test_case"
require_relative "../../support/http2_client"
require_relative "../../support/serves_tls"

# Applications of one server, each with its certificate, which counts for the hosts of that application alone.
class AppCertificatesTest < ManyAppsTestCase
  include ServesTls

  HOSTS = { "blog" => "blog.example.test", "shop" => "shop.example.test" }.freeze

  def setup
    super
    @folder = folder_with(HOSTS.keys.to_h { |name| ["#{name}/config.ru", echo(name)] })
    @pairs = {}
  end

  def test_clients_get_the_certificate_of_the_application
    issue("server", "other.example.test")
    HOSTS.each { |name, host| issue(name, host) }
    server = serve_apps
    expected = HOSTS.invert.merge("other.example.test" => "server", "unknown.example.test" => "server")
    expected.each { |host, name| assert_equal serial_of(name), serial_for(@port, host), host }
    assert_equal serial_of("server"), serial_for(@port, nil)
    HOSTS.each { |name, host| assert_equal name, name_at(host) }
    served = server.full_status.dig("tls", "certificates")
    hosts = served.to_h { |one| [File.basename(one["file"], ".pem"), one["hosts"]] }
    assert_equal HOSTS.transform_values { |host| [host] }.merge("server" => %w[other.example.test]), hosts
  end

  # One application takes over the name of another.
  def test_names_of_other_applications_do_not_count
    issue("server", "*.example.test")
    issue("blog", "blog.example.test", "shop.example.test", "*.example.test", "www.shop.example.test")
    serve_apps
    assert_equal serial_of("blog"), serial_for(@port, "blog.example.test")
    ["shop.example.test", "www.shop.example.test", "any.example.test", nil].each do |host|
      assert_equal serial_of("server"), serial_for(@port, host), host.inspect
    end
  end

  def test_without_one_of_the_server_unknown_names_get_none
    issue("blog", "blog.example.test", "shop.example.test")
    serve_apps
    assert_equal "blog", name_at("blog.example.test")
    ["shop.example.test", "unknown.example.test", nil].each do |host|
      assert_raises(OpenSSL::SSL::SSLError, host.inspect) { serial_for(@port, host) }
    end
  end

  # Its own configuration file may name it too, where it is of the user who starts Highball.
  def test_in_the_applications_own_file
    issue("server", "*.example.test")
    issue("blog", "blog.example.test")
    lines = lines_of("blog")
    FileUtils.mkdir_p(File.join(@folder, "blog/config"))
    File.write(File.join(@folder, "blog/config/highball.toml"), lines)
    serve_apps(in_entries: %w[shop])
    assert_equal [serial_of("blog"), serial_of("server")], serials
  end

  def test_a_broken_one_is_of_no_concern_to_others
    issue("server", "*.example.test")
    HOSTS.each { |name, host| issue(name, host) }
    File.write(path("blog.key"), "")
    server = serve_apps
    assert_match(/ERROR the application has no certificate.*blog\.key is empty/m, server.log)
    assert_match(/blog\.key is empty/, server.full_status.dig("tls", "problem"))
    assert_equal [serial_of("server"), serial_of("shop")], serials
    issue("blog", "blog.example.test")
    wait_for("the fixed certificate") { serial_for(@port, "blog.example.test") == serial_of("blog") }
    assert_nil server.full_status.dig("tls", "problem")
  end

  def test_a_broken_one_does_not_keep_others_from_being_renewed
    HOSTS.each { |name, host| issue(name, host) }
    server = serve_apps
    before = serial_of("blog")
    File.write(path("blog.pem"), "")
    issue("shop", "shop.example.test")
    server.signal("HUP")
    wait_for("the new certificate") { serial_for(@port, "shop.example.test") == serial_of("shop") }
    assert_equal before, serial_for(@port, "blog.example.test")
    assert_match(/blog\.pem is empty/, server.full_status.dig("tls", "problem"))
  end

  def test_hosts_that_change
    issue("server", "*.example.test")
    issue("blog", "*.example.test")
    server = serve_apps
    write_settings({ "blog" => "new.example.test", "shop" => "blog.example.test" })
    server.signal("HUP")
    wait_for("the new host") { serial_for(@port, "new.example.test") == serial_of("blog") }
    assert_equal serial_of("server"), serial_for(@port, "blog.example.test")
  end

  # RFC 9110, section 15.5.20: the client has checked the certificate of another application.
  def test_requests_for_hosts_with_another_certificate
    issue("server", "other.example.test", "*.wild.example.test")
    issue("blog", "blog.example.test", "shop.example.test")
    issue("shop", "shop.example.test")
    serve_apps
    blog, shop = HOSTS.values
    expected = { [blog, shop] => 421, [shop, blog] => 421, [blog, "other.example.test"] => 421,
                 [blog, "BLOG.example.test."] => 200, [blog, "#{blog}:443"] => 200,
                 ["other.example.test", blog] => 421, [nil, blog] => 200,
                 ["a.wild.example.test", "b.wild.example.test"] => 404,
                 ["other.example.test", "a.wild.example.test"] => 404,
                 ["other.example.test", "unknown.example.test"] => 404, ["other.example.test", "127.0.0.1"] => 404,
                 [blog, "unknown.example.test"] => 421, ["unknown.example.test", "other.example.test"] => 404,
                 ["unknown.example.test", shop] => 421 }
    expected.each do |(name, host), status|
      connect_tls(@port, host: name, verify: false) do |client|
        assert_equal status, client.get("/", { "Host" => host }).status, [name, host].inspect
      end
      assert_equal status, status_over_http2(name, host), [name, host, "HTTP/2"].inspect
    end
  end

  # On another stream of the same connection, the right host is served.
  def test_a_misdirected_request_costs_its_stream_alone
    HOSTS.each { |name, host| issue(name, host) }
    serve_apps
    over_http2("blog.example.test") do |client|
      %w[shop.example.test blog.example.test].zip([421, 200], [1, 3]) do |host, status, stream|
        client.send_request(stream, "GET", "/", {}, authority: host)
        assert_equal status, client.answer(stream).status, host
      end
    end
  end

  def test_what_is_wrong_with_the_configuration
    issue("blog", "blog.example.test")
    write_settings({ "blog" => "*", "shop" => "shop.example.test" })
    assert_match(/blog has a `tls_certificate`, which counts for its `hosts` alone/, output_of("serve"))
    write_settings({ "blog" => "other.example.test", "shop" => "shop.example.test" })
    assert_match(/warning +certificate: .*it is for none of the hosts of blog/, output_of("doctor"))
  end

  private

  def path(name) = File.join(@folder, name)

  def issue(name, *hosts)
    @pairs[name] = certificate_for(*hosts, folder: @folder, name: name)
  end

  def serial_of(name) = @pairs.fetch(name).last.certificate.serial

  # Of what clients get for the applications.
  def serials = HOSTS.values.map { |host| serial_for(@port, host) }

  def lines_of(name)
    "tls_certificate = '#{path("#{name}.pem")}'\ntls_key = '#{path("#{name}.key")}'\n"
  end

  def write_settings(hosts, in_entries: HOSTS.keys)
    entries = hosts.map do |name, host|
      lines = @pairs.key?(name) && in_entries.include?(name) ? lines_of(name) : ""
      "[[app]]\npath = '#{name}'\nhosts = ['#{host}']\n#{lines}"
    end
    top = @pairs.key?("server") ? lines_of("server") : ""
    File.write(path("highball.toml"), "bind = ['127.0.0.1:0', 'tls://127.0.0.1:0']\n#{top}#{entries.join}")
  end

  def serve_apps(**options)
    write_settings(HOSTS, **options)
    command = [HighballServer::BINARY, "serve", "-e", "production", "-w", "1", "-c", path("highball.toml")]
    server = HighballServer.new(@folder, command: command).tap { |one| @servers << one }
    wait_for("the server", within: 30) { server.log.include?("serving on") || !server.running? }
    @port = tls_port(server)
    server
  end

  def over_http2(name, &block)
    Http2Client.new(tls_socket(@port, host: name, verify: false, alpn: %w[h2])).greet.use(&block)
  end

  def status_over_http2(name, host)
    over_http2(name) do |client|
      client.ask(1, "GET", "/", {}, authority: host).status
    end
  end

  # The application that answers.
  def name_at(host)
    connect_tls(@port, host: host) { |client| JSON.parse(client.get("/", { "Host" => host }).body).first }
  end

  def output_of(command)
    HighballServer.run(command, "-e", "production", "-c", path("highball.toml"), directory: @folder).first
  end
end
