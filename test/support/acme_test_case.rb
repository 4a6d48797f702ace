# frozen_string_literal: true

require_relative "acme_authority"
require_relative "acme_double"
require_relative "tls_test_case"

# Tests of servers that obtain certificates from an authority.
class AcmeTestCase < TlsTestCase
  APP = "run ->(env) { [200, {}, [env['rack.url_scheme'], ' ', env['HTTP_HOST']]] }\n"
  HOST = "blog.test"
  VALID_FOR = 12 # seconds; renewed after 8

  def setup
    super
    skip "root's server for other users has no automatic certificates" if ENV["HIGHBALL_SERVER_USER"]
    %w[pebble pebble-challtestsrv].each { |program| needs(program, "pebble") }
    @http, @https = Array.new(2) { free_port }
    @state = File.join(folder_with, "state")
    @authority_folder = folder_with
    @pebble = AcmeAuthority.new(@authority_folder, http_port: @http)
  end

  def teardown
    @double&.stop
    @pebble&.stop
    super
  end

  private

  # What is wrong with the first domain, once something is.
  def problem_of(server, within: 10)
    wait_for("a problem", within: within) do
      server.status["tls"]["domains"].first.then { |one| one if one["problem"] }
    end
  end

  def kept(host) = Dir[File.join(@state, "certificates", "*", "#{host}.pem")].first

  def acme_options(*hosts)
    ["--state-dir", @state, "--acme-directory", (@double || @pebble).directory,
     "--acme-authorities", @pebble.vouching_file, *hosts.flat_map { |host| ["--domain", host] }]
  end

  def serve_domains(*hosts, extra: [], **settings)
    options = ["--bind", "tls://127.0.0.1:#{@https}", "--bind", "127.0.0.1:#{@http}", "--redirect-https", "on",
               *acme_options(*hosts), *extra]
    serve(folder_with("config.ru" => APP), *options, **settings)
  end

  # The body of a page, if a certificate is served that the authority has issued.
  def https_body(host, root = @pebble.root)
    context = OpenSSL::SSL::SSLContext.new
    context.verify_mode = OpenSSL::SSL::VERIFY_PEER
    context.verify_hostname = true
    context.cert_store = OpenSSL::X509::Store.new.tap { |store| store.add_cert(root) }
    tls = OpenSSL::SSL::SSLSocket.new(Socket.tcp("127.0.0.1", @https), context)
    tls.hostname = host
    tls.sync_close = true
    tls.connect
    HttpConnection.new(tls).use { |client| client.get("/", { "Host" => "#{host}:#{@https}" }).body }
  rescue OpenSSL::SSL::SSLError, SystemCallError
    tls&.close
    nil
  end

  # Where a client of the address for HTTP is sent.
  def redirection
    answer = HttpConnection.tcp(@http).use { |client| client.get("/a?b", { "Host" => "#{HOST}:#{@http}" }) }
    [answer.status, answer["location"]]
  end

  def stop_servers
    @servers.each { |server| finish(server) }
    @servers.clear
  end
end
