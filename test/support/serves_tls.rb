# frozen_string_literal: true

require_relative "http_connection"
require_relative "tls_files"

# For tests of servers with an address for HTTPS, on which a test authority's certificates are served.
module ServesTls
  private

  def authority = @authority ||= TlsFiles.authority

  # A folder with a certificate for these hosts and its key: [certificate's path, key's path, pair].
  # The block may add extensions.
  def certificate_for(*hosts, folder: folder_with, name: "site", **options, &block)
    pair = TlsFiles.issue(hosts, by: authority, **options, &block)
    write_pair(pair, File.join(folder, "#{name}.pem"), File.join(folder, "#{name}.key"))
  end

  def write_pair(pair, certificate, key)
    File.write(key, pair.key_pem, perm: 0o600)
    File.write(certificate, pair.pem)
    [certificate, key, pair]
  end

  # A server with an address for HTTP and one for HTTPS, for the host `localhost` by default.
  def serve_tls(app, *options, pairs: [certificate_for("localhost")], **settings)
    serve(app, *tls_options(pairs), *options, **settings)
  end

  def tls_options(pairs)
    files = pairs.flat_map { |certificate, key| ["--tls-certificate", certificate, "--tls-key", key] }
    ["--bind", "tls://127.0.0.1:0", *files]
  end

  # The port for HTTPS, from the log.
  def tls_port(server) = server.log[%r{https://127\.0\.0\.1:(\d+)}, 1].to_i

  # A connection that trusts the authority alone. `port`: of the server.
  def connect_tls(port, host: "localhost", **options, &block)
    tls = tls_socket(port, host: host, **options)
    HttpConnection.new(tls).use(&block)
  end

  def tls_socket(port, host: "localhost", session: nil, preface: "", **options)
    socket = Socket.tcp("127.0.0.1", port)
    socket.write(preface)
    tls = OpenSSL::SSL::SSLSocket.new(socket, tls_context(**options))
    tls.sync_close = true
    tls.hostname = host if host
    tls.session = session if session
    tls.connect
    tls
  rescue StandardError
    socket&.close
    raise
  end

  # `client`: the pair of a client that shows a certificate.
  def tls_context(verify: true, min: nil, max: nil, alpn: nil, ciphers: nil, client: nil)
    context = OpenSSL::SSL::SSLContext.new
    context.cert = client&.certificate
    context.key = client&.key
    context.min_version = min if min
    context.max_version = max if max
    context.alpn_protocols = alpn if alpn
    context.ciphers = ciphers if ciphers
    if verify
      context.verify_mode = OpenSSL::SSL::VERIFY_PEER
      context.verify_hostname = true
      context.cert_store = OpenSSL::X509::Store.new.tap { |store| store.add_cert(authority.certificate) }
    end
    context
  end

  # The serial number of the certificate that a client gets which names this host.
  def serial_for(port, host)
    tls = tls_socket(port, host: host, verify: false)
    tls.peer_cert.serial
  ensure
    tls&.close
  end

  # The session of a client that has made a request. With TLS 1.3, its ticket comes after the handshake.
  def session_after_request(port, **options)
    tls = tls_socket(port, **options)
    tls.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert_match(/ 200 /, tls.read)
    tls.session
  ensure
    tls&.close
  end

  def resumes?(port, session, **options)
    tls = tls_socket(port, session: session, **options)
    tls.session_reused?
  ensure
    tls&.close
  end

  # The server's address for HTTPS alone, as clients see it.
  def https_end(server) = HttpsEnd.new(tls_port(server), method(:connect_tls))

  HttpsEnd = Struct.new(:port, :by) do
    def connect(&block) = by.call(port, &block)
  end
end
