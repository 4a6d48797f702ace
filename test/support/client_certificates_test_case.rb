# frozen_string_literal: true

require "json"
require_relative "http2_client"
require_relative "tls_test_case"

# A test of applications whose clients show certificates.
class ClientCertificatesTestCase < TlsTestCase
  REFUSED = [OpenSSL::SSL::SSLError, Errno::ECONNRESET, Errno::EPIPE, EOFError].freeze
  # Answers with what it knows of the client.
  APP = <<~RUBY
    require "json"
    run lambda { |env|
      facts = env.select { |name, _| name.start_with?("SSL_CLIENT", "HTTP_SSL", "puma.peercert") }
      facts["puma.peercert"] &&= facts["puma.peercert"].subject.to_a.to_s
      [200, { "cache-control" => "public, max-age=60" }, [facts.to_json]]
    }
  RUBY

  def setup
    super
    @clients = TlsFiles.authority("Clients")
    @alice = client("alice")
    @folder = folder_with("config.ru" => APP, "public/a.txt" => "static")
    @file = File.join(folder_with, "clients.pem")
    File.write(@file, @clients.pem)
  end

  private

  # The server's certificate.
  def pair = @pair ||= certificate_for("localhost", "a.test", "b.test", "open.test")

  def serve_with(*options, **settings)
    serve_tls(@folder, "--tls-client-ca", @file, *options, pairs: [pair], **settings)
  end

  def serve_configured(lines)
    configure(lines)
    serve_tls(@folder, pairs: [pair])
  end

  def configure(lines)
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/highball.toml"), lines)
  end

  # Two applications with authorities, and one without. The block changes files before the start.
  def serve_sites
    @others = TlsFiles.authority("Others")
    others = File.join(folder_with("others.pem" => @others.pem), "others.pem")
    file = sites("a.test" => "tls_client_ca = '#{@file}'", "b.test" => "tls_client_ca = '#{others}'", "open.test" => "")
    yield if block_given?
    command = [HighballServer::BINARY, "serve", "-e", "production", "-w", "1", "-c", file]
    serve(File.dirname(file), command: command)
  end

  # A configuration of applications, by host.
  def sites(entries)
    folder = folder_with(entries.keys.to_h { |host| ["#{host}/config.ru", APP] })
    top = "bind = ['127.0.0.1:0', 'tls://127.0.0.1:0']\ntls_certificate = '#{pair[0]}'\ntls_key = '#{pair[1]}'\n"
    apps = entries.map do |host, lines|
      hosts = "hosts = ['#{host}']\n" unless lines.include?("hosts")
      "[[app]]\npath = '#{host}'\n#{hosts}#{lines}\n"
    end
    File.join(folder, "highball.toml").tap { |file| File.write(file, top + apps.join) }
  end

  # `comment`: bytes that make the certificate longer.
  def client(name, by: @clients, purpose: "clientAuth", comment: 0, **times)
    TlsFiles.issue([], by: by, name: name, **times) do |certificate, factory|
      certificate.add_extension(factory.create_extension("extendedKeyUsage", purpose))
      certificate.add_extension(factory.create_extension("nsComment", "x" * comment)) if comment.positive?
    end
  end

  # Clients that do not get in, by what is wrong with them.
  def strangers
    @strangers ||= { "without a certificate" => nil,
                     "of another authority" => client("eve", by: TlsFiles.authority("Eve")),
                     "of an authority that calls itself the same" => client("eve", by: TlsFiles.authority("Clients")),
                     "expired" => client("late", to: Time.now - 60),
                     "too early" => client("early", from: Time.now + 600),
                     "a server's" => client("server", purpose: "serverAuth") }
  end

  def get(port, path, client, host: "localhost", fields: {}, **options)
    connect_tls(port, host: host, client: client, **options) do |connection|
      connection.get(path, { "Host" => host }.merge(fields))
    end
  end

  # What the application says of the client.
  def facts_of(port, client, **options)
    answer = get(port, "/", client, **options)
    assert_equal 200, answer.status
    JSON.parse(answer.body)
  end

  def over_http2(port, client, host: "localhost", &block)
    socket = tls_socket(port, host: host, client: client, verify: false, alpn: %w[h2])
    Http2Client.new(socket).greet.use(&block)
  end

  # With TLS 1.3, a client learns it with its first request.
  def refused?(port, client, **options)
    get(port, "/", client, **options)
    false
  rescue *REFUSED
    true
  end

  def assert_refused(port, client, message, **options)
    assert refused?(port, client, **options), message
  end

  # What the application says of a client that resumes a session and shows no certificate, and whether it was resumed.
  def resume(port, session, **options)
    tls = tls_socket(port, session: session, **options)
    tls.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    text = tls.read
    raise EOFError if text.empty?

    [JSON.parse(text[/\r\n\r\n(.*)/m, 1]), tls.session_reused?]
  ensure
    tls&.close
  end
end
