# frozen_string_literal: true

require "socket"
require_relative "../../support/e2e_test"
require_relative "../../support/tls_files"

# What narrows something (addresses, certificates, users, hosts, passwords, limits) and cannot be kept: no server starts
# that would be open in its place. The rows of the tables in docs/restrictions.md, and each source of options.
class RestrictionsTest < E2ETest
  PAGE = File.read(File.join(HighballServer::ROOT, "docs/restrictions.md"))
  OPTIONS, SOURCES = PAGE.split("The rule holds").map do |part|
    part.scan(/^\| (?!option|source|---)(.*?) \|/).flatten
  end
  APP = "run ->(_env) { [200, {}, ['open']] }\n"
  ADDRESS = %w[-b 127.0.0.1 -p 0].freeze

  # Options that keep a server from starting, by the first option of the row.
  REFUSED = {
    "bind" => { %w[-b unix:/no/such/folder/x.sock] => %r{/no/such/folder}, %w[-b fd://5] => /is not an address/,
                ["-b", ""] => /is not an address/, %w[-b localhots] => /did you mean localhost/,
                %w[-b tcp://127.0.0.1:0?x] => /is not an address/ },
    "tls_certificate" => { %w[-b tls://127.0.0.1:0 --tls-certificate /no/such.pem] => %r{/no/such\.pem},
                           %w[-b tls://127.0.0.1:0] => /needs a certificate/ },
    "tls_client_ca" => { %w[-b 127.0.0.1 -p 0 --tls-client-ca /no/such.pem] => /no address is for HTTPS/,
                         %w[-b 127.0.0.1 -p 0 --tls-client-auth required] => /names no file of authorities/ },
    "https" => { %w[-b 127.0.0.1 -p 0 --redirect-https on] => /needs an address for HTTPS/,
                 %w[-b 127.0.0.1 -p 0 --domain blog.example.org] => /needs an address for HTTPS/ },
    "hsts" => { %w[-b 127.0.0.1 -p 0 --hsts 1d] => /no address is for HTTPS/ },
    "response_headers" => { %w[-b 127.0.0.1 -p 0 --response-headers X-Frame-Options] => /not a change to a header/ },
    "proxy_protocol" => { %w[-b 127.0.0.1 -p 0 --proxy-protocol-from 10.0.0.0/8] => /which is off/,
                          %w[-b 127.0.0.1 -p 0 --proxy-protocol v3] => /is not one of/ },
    "trusted_proxies" => { %w[-b 127.0.0.1 -p 0 --trusted-proxies loopbak] => /not a network.*did you mean loopback/ },
    "server_user" => { %w[-b 127.0.0.1 -p 0 --server-user nobdy] => /there is no user `nobdy`/ },
    "admin" => { %w[-b 127.0.0.1 -p 0 --admin unix:/no/such/folder/x] => %r{/no/such/folder},
                 %w[-b 127.0.0.1 -p 0 --admin-host a/b] => /is not a host name/ },
    "show_diagnosis" => { %w[-b 127.0.0.1 -p 0 --show-diagnosis lcal] => /did you mean local/ },
    "hosts" => { %w[-b 127.0.0.1 -p 0 --hosts a/b] => /is not a host name/,
                 %w[-b 127.0.0.1 -p 0 --prefix a] => /prefix/ },
    "user" => { %w[-b 127.0.0.1 -p 0 --user nobdy] => /there is no user `nobdy`.*did you mean nobody/ },
    "no_new_privs" => { %w[-b 127.0.0.1 -p 0 --no-new-privs yess] => /neither on nor off/ },
    "basic_auth" => { %w[-b 127.0.0.1 -p 0 --basic-auth-realm Staging] => /names no file of users/,
                      ["-b", "127.0.0.1", "-p", "0", "--basic-auth", ""] => /a path is missing/ },
    "sendfile" => { ["-b", "127.0.0.1", "-p", "0", "--sendfile", ""] => /sendfile/ },
    "max_body" => { %w[-b 127.0.0.1 -p 0 --max-body lots] => /is not a size/ }
  }.freeze

  def setup
    super
    skip "the server is another user than the application's owner" if ENV["HIGHBALL_SERVER_USER"]
  end

  # --- the tables

  def test_the_rows_of_the_table_are_tried
    first = OPTIONS.map { |names| names[/\w+/] }
    assert_equal REFUSED.keys + %w[memory_max], first
    assert_equal ["command line", "variable", "variable with a misspelt name", "`highball.toml`", "`[[app]]`",
                  "`config/puma.rb`", "`config/puma.rb` that isn't evaluated", "another server's file",
                  "`rackup -O`, `rails server`", "socket unit of systemd", "HUP", "hot restart"], SOURCES
  end

  REFUSED.each do |option, ways|
    define_method("test_#{option}_that_cannot_be_kept") do
      folder = folder_with("config.ru" => APP)
      ways.each do |arguments, message|
        skip "needs root" if option.end_with?("user") && !Process.uid.zero?
        assert_refused(message, *arguments, folder)
      end
    end
  end

  def test_a_file_of_users_that_is_missing_lets_nobody_in
    server = serve(folder_with("config.ru" => APP, "config/highball.toml" => "basic_auth = 'config/htpasswd'\n"))
    assert_equal [401, 500], [server.get("/").status,
                              server.get("/", { "Authorization" => "Basic #{['a:b'].pack('m0')}" }).status]
  end

  # --- variables

  def test_variables
    { { "PORT" => "abc" } => /PORT: `abc`/, { "BINDING" => " " } => /BINDING: it is set and blank/,
      { "HIGHBALL_BASIC_AUTH" => "" } => /HIGHBALL_BASIC_AUTH: it is set and blank/,
      { "HIGHBALL_BASIC_AUTH" => "/srv/caf\xE9" } => /HIGHBALL_BASIC_AUTH: `.*xe9` is not UTF-8/,
      { "HIGHBALL_BIND" => "127.0.0.1,\xFF" } => /HIGHBALL_BIND: .* is not UTF-8/,
      { "HIGHBALL_BASIC_ATUH" => "/srv/users" } => /HIGHBALL_BASIC_ATUH: .*did you mean HIGHBALL_BASIC_AUTH/,
      { "HIGHBALL_TRUSTED_PROXIE" => "10.0.0.1" } => /did you mean HIGHBALL_TRUSTED_PROXIES/ }
      .each do |variables, message|
      assert_refused(message, folder_with("config.ru" => APP), env: { "PORT" => "0" }.merge(variables))
    end
  end

  def test_blank_variables_that_narrow_nothing_count_as_unset
    server = serve(folder_with("config.ru" => APP), env: { "HIGHBALL_MAX_WORKERS" => "", "HIGHBALL_LOG_FORMAT" => " " })
    assert_equal 200, server.get("/").status
  end

  # --- files

  def test_a_file_that_leads_nowhere_or_cannot_be_read
    make = { %r{config/highball\.toml: cannot be read} => ->(at) { File.symlink("/no/such", "#{at}/highball.toml") },
             %r{config/puma\.rb: cannot be read} => ->(at) { File.symlink("/no/such/file", "#{at}/puma.rb") },
             /a named pipe/ => ->(at) { File.mkfifo("#{at}/highball.toml") },
             /Is a directory/ => ->(at) { Dir.mkdir("#{at}/puma.rb") } }
    make.each do |message, how|
      folder = folder_with("config.ru" => APP, "config/.keep" => "")
      how.call(File.join(folder, "config"))
      assert_refused(message, "-p", "0", folder)
    end
  end

  def test_an_entry_without_a_folder_keeps_its_hosts
    other = folder_with("config.ru" => APP)
    file = File.join(folder_with, "highball.toml")
    File.write(file, "[[app]]\npath = '/no/such/app'\nhosts = ['shop.test']\nprestart = true\n" \
                     "[[app]]\npath = '#{other}'\nhosts = ['*']\n")
    server = serve(other, command: [HighballServer::BINARY, "-c", file, *ADDRESS, "-e", "production"])
    statuses = %w[blog.test shop.test].map { |host| server.get("/", { "Host" => host }).status }
    assert_equal [200, 503], statuses
  end

  def test_a_reload_keeps_what_was
    folder = folder_with("config.ru" => APP, "config/highball.toml" => "basic_auth = 'users'\n")
    server = serve(folder)
    ["basic_atuh = 'users'\n", "basic_auth = ''\n", "basic_auth_realm = 'x'\n", "\xFF"].each_with_index do |text, index|
      File.binwrite(File.join(folder, "config/highball.toml"), text)
      server.signal("HUP")
      wait_for("the refusal") { server.log.scan(/ERROR .*keeping the old one/).length > index }
      assert_equal 401, server.get("/").status
    end
    File.delete(File.join(folder, "config/highball.toml"))
    server.signal("HUP")
    wait_for("the refusal") { server.log.match?(/configuration file .* has gone/) }
    assert_equal 401, server.get("/").status
    File.write(File.join(folder, "config/highball.toml"), "basic_atuh = 'users'\n")
    output = highball_fails("upgrade", *server.which)
    assert_match(/configuration/, output)
    assert_equal 401, server.get("/").status
  end

  # --- config/puma.rb

  # Each is the only address of its file.
  def test_an_address_of_puma_that_cannot_be_bound
    { "ssl_bind '127.0.0.1', 9292, cert: 'a.crt', key: 'a.key'" => /a\.crt \(`cert`\) does not exist/,
      "ssl_bind '127.0.0.1', 9292" => /names no `cert`/,
      "ssl_bind '127.0.0.1', 9292, cert_pem: 'x', key_pem: 'y'" => /`cert_pem` cannot be kept/,
      "bind 'ssl://127.0.0.1:9292?cert=config.ru&key=config.ru&verify_mode=peer&ca=x'" => /: peer.*ssl_verify/,
      "bind 'ssl://127.0.0.1:9292?cert=config.ru&key=config.ru&ssl_cipher_filter=AES'" => /`ssl_cipher_filter` cannot/,
      "bind 'tcp://127.0.0.1:9292?key=config.ru'" => /is for addresses with TLS/,
      "bind 'unix://@abstract'" => /abstract sockets are not bound/,
      "bind 'unix:///no/such/folder/x.sock'" => %r{no/such/folder},
      "bind 'fd://5'" => /is not an address/, "bind 'gopher://127.0.0.1:1'" => /is not an address/,
      "bind nil" => /is not an address/, "bind_to_activated_sockets" => /systemd \.socket unit/,
      "ssl_bnd '127.0.0.1', 9292" => /Did you mean ssl_bind/, "allowed_hosts 'x'" => /This statement is not known/,
      "port 3000, 'no.such.host'" => /host names are not looked up/,
      "rackup '/no/such/protected.ru'" => /is not loaded from/ }.each do |statement, message|
      [["-e", "production"], []].each do |options|
        folder = folder_with("config.ru" => APP, "config/puma.rb" => "threads 1\n#{statement}\n")
        output = assert_refused(message, *options, folder)
        assert_match(%r{config/puma\.rb, line 2}, output, statement)
      end
    end
  end

  def test_a_unix_socket_that_more_users_could_connect_to
    folder = folder_with("config.ru" => APP)
    FileUtils.mkdir(File.join(folder, "config"))
    File.write(File.join(folder, "config/puma.rb"), "bind 'unix://#{folder}/x.sock?umask=0077'\n")
    output, ended = Open3.capture2e(HighballServer::ENVIRONMENT, "sh", "-c", 'umask 0; exec "$@"', "sh",
                                    HighballServer::BINARY, "serve", folder)
    refute_predicate ended, :success?, output
    assert_match(/puma\.rb, line 1: .*more users could connect/, output)
  end

  def test_other_addresses_of_the_file_are_enough
    folder = folder_with("config.ru" => APP, "config/puma.rb" => "bind 'ssl://0.0.0.0:1'\nbind 'tcp://127.0.0.1:0'\n")
    server = serve(folder, command: [HighballServer::BINARY, "serve", "-e", "production", folder])
    assert_match(/WARN .*puma\.rb:1: `bind`: .* is not bound/, server.log)
    assert_equal 200, server.get("/").status
  end

  def test_addresses_of_the_command_line_go_before
    folder = folder_with("config.ru" => APP, "config/puma.rb" => "bind 'unix://@abstract'\n")
    assert_equal 200, serve(folder, command: [HighballServer::BINARY, "serve", *ADDRESS, folder]).get("/").status
  end

  def test_a_host_for_addresses_that_are_not_named
    folder = folder_with("config.ru" => APP, "config/puma.rb" => "set_default_host '127.0.0.1'\n")
    server = serve(folder, command: [HighballServer::BINARY, "serve", "-e", "production", "-p", "0", folder])
    assert_match(%r{serving on http://127\.0\.0\.1:}, server.log)
  end

  def test_tls_as_puma_has_it
    pair = TlsFiles.issue(["localhost"])
    ["ssl_bind '127.0.0.1', '0', cert: 'a.crt', key: 'a.key', verify_mode: 'none', no_tlsv1: true\n",
     "bind 'ssl://127.0.0.1:0?key=a%2Ekey&cert=a.crt'\n"].each do |statement|
      folder = folder_with("config.ru" => APP, "config/puma.rb" => statement,
                           "a.crt" => pair.pem, "a.key" => pair.key_pem)
      server = HighballServer.new(folder, command: [HighballServer::BINARY, "serve", "-e", "production", folder])
      @servers << server
      wait_for("the server", within: 60) { server.log[%r{serving on https://127\.0\.0\.1:(\d+)}] }
      assert_equal pair.certificate.to_der, certificate_at(server.log[%r{https://127\.0\.0\.1:(\d+)}, 1].to_i)
      refute_match(%r{http://}, server.log)
    end
  end

  def test_methods_and_addresses_of_clients_are_as_the_file_says
    app = "run ->(env) { [200, {}, [env['REMOTE_ADDR']]] }\n"
    folder = folder_with("config.ru" => app, "config/puma.rb" => "supported_http_methods %w[GET]\n" \
                                                                 "set_remote_address header: 'X-Real-IP'\n")
    server = serve(folder, command: [HighballServer::BINARY, "serve", *ADDRESS, folder])
    assert_equal "192.0.2.7", server.get("/", { "X-Real-IP" => "192.0.2.7, 10.0.0.1" }).body
    assert_equal([200, 501], %w[GET DELETE].map { |method| server.request(method, "/").status })
  end

  def test_several_applications_with_addresses_of_their_own
    one = folder_with("config.ru" => APP, "config/puma.rb" => "bind 'tcp://127.0.0.1:3000'\n")
    two = folder_with("config.ru" => APP)
    server = HighballServer.new(one, command: [HighballServer::BINARY, "serve", "-e", "production", one, two],
                                     env: { "PORT" => "0" })
    @servers << server
    wait_for("the failure", within: 60) { server.log.match?(/puma\.rb, line 1: `bind`: .*option of the server/) }
  end

  # --- files of other servers

  def test_files_of_other_servers
    { "unicorn.rb" => ["worker_processes 2\nlisten '127.0.0.1:8080'\n", /Unicorn.*unicorn-pitchfork\.md/],
      "pitchfork.rb" => ["refork_after [50]\n", /Pitchfork/], "falcon.rb" => ["load :rack\n", /Falcon/],
      "Itsi.rb" => ["bind 'http://127.0.0.1'\n", /Itsi/], "iodine.rb" => ["Iodine.threads = 1\n", /Iodine/],
      "thin.yml" => ["---\naddress: 127.0.0.1\nchdir: /srv\n", /Thin.*other-servers\.md/],
      "Passengerfile.json" => ["{\"port\": 80}", /Passenger.*passenger\.md/],
      "site.conf" => ["server {\n  passenger_enabled on;\n}\n", /Passenger/],
      "nginx.conf" => ["http {\n}\n", /nginx\.md/], "Caddyfile" => ["x\n", /Caddy/],
      "Procfile" => ["web: bundle exec puma\n", /Procfile/], "deploy.yml" => ["service: a\nimage: b\n", /Kamal/],
      "Dockerfile" => ["FROM ruby\n", /Docker/] }.each do |name, (text, message)|
      folder = folder_with("config.ru" => APP, name => text)
      assert_refused(message, "-p", "0", "-c", File.join(folder, name), folder)
    end
    assert_refused(/puma\.rb: this is a file of Unicorn/, "-p", "0",
                   folder_with("config.ru" => APP, "config/puma.rb" => "worker_processes 2\nlisten 80\n"))
  end

  # --- other ways to start

  def test_rackup
    { %w[-O basic_auth=users] => /no option basic_auth here/, %w[-O Bind=127.0.0.1] => /no option Bind here/,
      ["-o", ""] => /the address is blank/ }.each do |options, message|
      folder = folder_with("config.ru" => APP)
      env = HighballServer::ENVIRONMENT.merge("RUBYLIB" => File.join(HighballServer::ROOT, "lib"))
      output, ended = Open3.capture2e(env, "rackup", "-s", "highball", "-p", "0", *options, "config.ru", chdir: folder)
      refute_predicate ended, :success?, output
      assert_match message, output
    end
  end

  # A socket unit names an address, and no option does.
  def test_a_socket_unit_that_no_option_names
    socket = TCPServer.new("127.0.0.1", 0)
    script = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'
    output, ended = Open3.capture2e(HighballServer::ENVIRONMENT, "sh", "-c", script, "sh", HighballServer::BINARY,
                                    "serve", "-e", "production", folder_with("config.ru" => APP), 3 => socket)
    refute_predicate ended, :success?, output
    assert_match(/systemd has passed a socket for 127\.0\.0\.1:/, output)
  ensure
    socket&.close
  end

  private

  def assert_refused(message, *arguments, env: {})
    output, ended = HighballServer.run("serve", *arguments, env: env)
    refute_predicate ended, :success?, "#{arguments.inspect} #{env.inspect}\n#{output}"
    assert_match message, output, arguments.inspect
    output
  end

  def certificate_at(port)
    TCPSocket.open("127.0.0.1", port) do |socket|
      tls = OpenSSL::SSL::SSLSocket.new(socket)
      tls.connect
      tls.peer_cert.to_der
    ensure
      tls&.close
    end
  end
end
