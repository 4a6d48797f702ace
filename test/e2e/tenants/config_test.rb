# frozen_string_literal: true

require_relative "../../support/tenant_config_test_case"

# A tenant's own configuration file sets options of that tenant's application, and nothing else: it names no other
# applications, sets no option of the server, and cannot take hosts or paths of another tenant.
class TenantConfigTest < TenantConfigTestCase
  # Options of the server, in the file of a tenant who may not set them.
  SERVER_OPTIONS = {
    "bind" => "bind = 'unix:attack.sock'", "port" => "port = 80", "pidfile" => "pidfile = 'tmp/pid'",
    "spool_dir" => "spool_dir = '/etc'", "log_format" => "log_format = 'json'",
    "max_connections" => "max_connections = 1", "drain_timeout" => "drain_timeout = '1d'",
    "access_log" => "access_log = 'log/access.log'", "tls_key" => "tls_key = '/etc/ssl/private/other.key'"
  }.freeze
  # --- who runs what

  def test_no_other_application_is_named_in_an_applications_own_file
    { "/usr" => "", @place => "", victim_app => "" }.each_key do |path|
      app = attacker_app(FILE => "[[app]]\npath = '#{path}'\nruby = '#{evil}'\n", **evil_files)
      %w[serve doctor].each { |command| assert_refused(/#{FILE}, line 1: .*\[\[app\]\]/, app, command: command) }
      assert_empty proofs
    end
  end

  def test_hup_trusts_no_more_files_than_the_start
    app = attacker_app(evil_files)
    server = serve_tenants(app)
    write(app, FILE, "[[app]]\npath = '/usr'\nruby = '#{evil}'\n")
    server.signal("HUP")
    wait_for("the refusal") { server.log.match?(/ERROR .*keeping .* app=attacker\n.*highball\.toml, line 1: /) }
    assert_both_serve(server)
    assert_empty proofs
    assert_match(/line 1/, app_status(server, "attacker")["last_failure"])
  end

  def test_a_link_to_a_file_of_roots_counts_as_its_makers
    of_root = File.join(@place, "of-root.toml")
    File.write(of_root, "user = 'root'\n", perm: 0o644)
    app = attacker_app(FILE => "")
    as_attacker { FileUtils.ln_sf(of_root, File.join(app, FILE)) }
    assert_refused(/#{FILE}, line 1: `user` decides/, app)
    server = serve_tenants(app)
    assert_failed(server, /line 1: `user`/)
    assert_victim_serves(server)
  end

  def test_a_link_above_the_file_counts_as_its_makers
    FileUtils.mkdir(File.join(@place, "config"))
    File.write(File.join(@place, FILE), "user = 'root'\n")
    app = attacker_app
    as_attacker { FileUtils.ln_s(File.join(@place, "config"), File.join(app, "config")) }
    assert_refused(/#{FILE}, line 1: `user`/, app)
    # The same for a link above the application: all of its target is root's.
    of_root = app_of("root", { "config.ru" => FACTS, FILE => "user = 'root'\n" }, "of-root-app")
    home = home_of_attacker
    as_attacker { FileUtils.ln_s(of_root, File.join(home, "current")) }
    assert_refused(/#{FILE}, line 1: `user`/, File.join(home, "current"))
  end

  def test_what_only_root_may_read_does_not_reach_an_application
    secret = File.join(@place, "secret.toml")
    File.write(secret, "variables = { LEAK = 'a deep secret' }\n", perm: 0o600)
    app = attacker_app("config.ru" => ENVIRONMENT, FILE => "")
    as_attacker { FileUtils.ln_sf(secret, File.join(app, FILE)) }
    assert_refused(/user #{ATTACKER} may not open it/, app)
    server = serve_tenants(app, environment: "development")
    answer = ask_attacker(server, "/", within: 60)
    refute_includes answer.body + server.log, "a deep secret"
    refute_equal 200, answer.status
    assert_victim_serves(server)
    # Through a hard link, which this kernel lets only the file's owner make.
    FileUtils.rm(File.join(app, FILE))
    File.link(secret, File.join(app, FILE))
    refute_includes assert_refused(/user #{ATTACKER} may not open it/, app), "deep"
  end

  def test_a_file_of_roots_in_a_folder_of_the_tenants_is_not_trusted
    app = attacker_app(FILE => "")
    ["user = 'root'", "[[app]]\npath = '/usr'", "port = 1"].each do |text|
      write(app, FILE, text)
      [FILE, "config"].each { |path| File.chown(0, 0, File.join(app, path)) }
      assert_refused(/#{FILE}, line 1: .*#{app} belongs to #{ATTACKER}/, app)
      File.chown(Etc.getpwnam(ATTACKER).uid, nil, File.join(app, "config"))
    end
  end

  def test_a_file_that_others_may_write_is_not_trusted
    app = app_of("root", { "config.ru" => FACTS, FILE => "port = 1" }, "open")
    { "config" => 0o777, FILE => 0o666, "." => 0o775 }.each do |path, mode|
      before = File.stat(File.join(app, path)).mode
      File.chmod(mode, File.join(app, path))
      assert_refused(/line 1: `port` is an option of the server.*can be written to by others/, app)
      File.chmod(before, File.join(app, path))
    end
    output, = HighballServer.run("config", "nginx", app, env: env)
    assert_includes output, "127.0.0.1:1\"", "other users can no longer write there"
  end

  def test_a_link_to_another_tenants_files_is_not_followed_as_that_tenant
    private_site = app_of(VICTIM, { "index.html" => "for the victim alone" }, "private").tap do |path|
      File.chmod(0o700, path)
    end
    home = home_of_attacker
    as_attacker { FileUtils.ln_s(private_site, File.join(home, "attacker")) }
    server = serve_tenants(File.join(home, "attacker"), top: "app_max_spool = '1g'")
    answer = ask_attacker(server)
    refute_includes answer.body, "for the victim alone"
    assert_failed(server, /belongs to #{ATTACKER}, and leads to files of #{VICTIM}/)
    assert_victim_serves(server)
  end

  # A user who may rename a folder decides which application a restart finds there.
  def test_an_application_of_roots_in_a_tenants_folder_does_not_run_as_root
    home = home_of_attacker
    app = app_of("root", { "config.ru" => FACTS }, "home/app")
    File.chown(Etc.getpwnam(ATTACKER).uid, nil, home)
    server = serve_as_root(app)
    assert_runs_as ATTACKER, facts(server)
  end

  # --- what is the server's

  def test_server_options_are_not_taken_from_an_applications_own_file
    app = attacker_app(FILE => "")
    SERVER_OPTIONS.each do |name, text|
      write(app, FILE, "workers = 1\n#{text}\n")
      output = assert_refused(/#{FILE}, line 2: `#{name}` /, app)
      assert_match(/#{app} belongs to #{ATTACKER}; give it on the command line/, output)
    end
    refute_path_exists File.join(app, "attack.sock")
  end

  def test_one_of_several_with_a_server_option_is_failed
    server = serve_tenants(attacker_app(FILE => "bind = 'unix:#{@place}/attack.sock'\n"))
    assert_failed(server, /line 1: `bind` is an option of the server/)
    assert_victim_serves(server)
    refute_path_exists File.join(@place, "attack.sock")
  end

  def test_other_programs_are_configured_by_no_more_than_that
    app = attacker_app(FILE => "")
    { "user = 'root'" => /`user`/, "[[app]]\npath = '/usr'" => /\[\[app\]\]/,
      "port = 1" => /`port`/ }.each do |text, message|
      write(app, FILE, text)
      %w[systemd nginx].each do |program|
        output = highball_fails("config", program, app, env: env)
        assert_match(message, output)
        refute_match(/User=root|ExecStart/, output)
      end
    end
    write(app, FILE, "user = '#{ATTACKER}'\n")
    output, = HighballServer.run("config", "systemd", app, env: env)
    assert_match(/^User=#{ATTACKER}$/, output)
  end

  # An administrator who is not root pipes the output into a file of root's.
  def test_config_for_another_user_does_not_trust_it_either
    app = attacker_app(FILE => "user = 'root'\n")
    binary = File.join(@place, "highball")
    FileUtils.cp(HighballServer::BINARY, binary)
    through = ["setpriv", "--reuid=#{VICTIM}", "--regid=#{Etc.getpwnam(VICTIM).gid}", "--clear-groups"]
    output, ended = Open3.capture2e(HighballServer::ENVIRONMENT, *through, binary, "config", "systemd", app)
    refute_predicate ended, :success?, output
    assert_match(/line 1: `user` decides/, output)
  end

  def test_a_file_that_changes_while_it_is_read_gains_nothing
    secret = File.join(@place, "secret.toml")
    File.write(secret, "user = 'root'\nhosts = ['leak.test']\n", perm: 0o600)
    app = attacker_app(FILE => "user = '#{ATTACKER}'\n")
    swapping = swap_for_ever(app, secret)
    outputs = Array.new(40) { HighballServer.run("config", "systemd", app, env: env).first }
    outputs.each { |output| refute_match(/User=root|leak/, output) }
  ensure
    if swapping
      HighballServer.kill(swapping)
      Process.wait(swapping)
    end
  end

  # --- where applications are reached

  def test_a_tenant_takes_no_host_prefix_or_name_of_another
    ["hosts = ['t2.test']\nprefix = '/login'", "prefix = '/login'", "name = 'victim'", "hosts = ['*']"].each do |text|
      app = attacker_app(FILE => text)
      server = serve_tenants_by_name(app, victim_app)
      assert_failed(server, /line 1: `\w+` decides where an application is reached, which the server's file says/)
      assert_victim_serves(server)
      assert_equal 503, server.get("/", { "Host" => "attacker" }).status, "by its name, as always"
      assert_runs_as VICTIM, facts(server, { "Host" => "t2.test" })
      server.stop
    end
  end

  # --- what root names

  def test_a_file_that_root_names_has_to_be_out_of_others_reach
    app = attacker_app(FILE => "port = 1\n")
    folder = app_of("root", { "server.toml" => "port = 1\n" }, "etc")
    named = File.join(folder, "server.toml")
    assert_refused(/configuration file .*: .*belongs to #{ATTACKER}: .*chown root/, "--config", File.join(app, FILE),
                   app)
    File.chmod(0o664, named)
    assert_refused(/can be written to by others: .*chmod go-w #{named}/, "--config", named, app)
    File.chmod(0o644, named)
    File.chmod(0o777, folder)
    assert_refused(/#{folder} can be written to by others/, "--config", named, app)
    File.chmod(0o755, folder)
    highball("config", "nginx", "--config", named, app, env: env)
    link = File.join(app, "link.toml")
    as_attacker { FileUtils.ln_s(named, link) }
    assert_refused(/belongs to #{ATTACKER}/, "--config", link, app)
  end
end
