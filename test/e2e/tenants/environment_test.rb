# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# The environment of applications' processes: no variables of root's for other users, and none of `bundle exec` for
# other Gemfiles.
class TenantEnvironmentTest < TenantsTestCase
  # Answers with the variables of the process, now and when it was loaded.
  VARIABLES = <<~RUBY
    require "json"
    loaded = ENV.to_h
    run ->(_env) { [200, {}, [JSON.generate(loaded.merge(ENV.to_h))]] }
  RUBY

  OF_THE_SERVICE_MANAGER = {
    "NOTIFY_SOCKET" => "@highball-test-no-listener", "LISTEN_FDS" => "1", "LISTEN_PID" => "1",
    "LISTEN_FDNAMES" => "http", "WATCHDOG_PID" => "1", "WATCHDOG_USEC" => "1000000", "FDSTORE" => "8"
  }.freeze

  # Variables that an administrator's shell or a unit may have set.
  OF_ROOT = {
    "SECRET_KEY_BASE" => "of-root", "DATABASE_URL" => "postgres://root:of-root@db", "RAILS_MASTER_KEY" => "of-root",
    "AWS_SECRET_ACCESS_KEY" => "of-root", "SSH_AUTH_SOCK" => "/root/agent", "SUDO_USER" => "admin",
    "CREDENTIALS_DIRECTORY" => "/run/credentials/highball.service", "JOURNAL_STREAM" => "9:1", "INVOCATION_ID" => "1",
    "RUBYOPT" => "-W0", "RUBYLIB" => "/root/lib", "GEM_HOME" => "/root/gems", "BUNDLE_PATH" => "/root/bundle",
    "BUNDLE_GEMS__CONTRIBSYS__COM" => "of-root", "LD_LIBRARY_PATH" => "/root/lib", "XDG_CONFIG_HOME" => "/root/.config",
    "DBUS_SESSION_BUS_ADDRESS" => "unix:path=/run/user/0/bus", "MAIL" => "/var/mail/root", "HIGHBALL_X" => "of-root"
  }.freeze

  OF_HIGHBALL = %w[HIGHBALL_LIB HIGHBALL_BINARY HIGHBALL_HUB RACK_ENV RAILS_ENV APP_ENV PWD].freeze
  OF_A_LOGIN = %w[HOME LOGNAME SHELL USER].freeze
  HARMLESS = %w[PATH LANG LC_ALL TZ https_proxy no_proxy SSL_CERT_FILE MALLOC_ARENA_MAX RUBY_GC_HEAP_GROWTH_FACTOR
                RAILS_MAX_THREADS].freeze

  def test_nothing_of_roots_environment_is_for_other_users
    passed = HARMLESS.to_h { |name| [name, ENV.fetch(name, "1")] }
    server = serve_both(env: OF_THE_SERVICE_MANAGER.merge(OF_ROOT, passed, "LANG" => "C.UTF-8", "HOME" => "/root"))
    theirs = variables(server)
    expected = HARMLESS + OF_HIGHBALL + OF_A_LOGIN + [HighballServer::MARK]
    assert_empty expected - theirs.keys
    assert_empty (theirs.keys - expected).grep_v(/\A(LC_\w+|LANGUAGE|\w+_(proxy|PROXY)|SSL_CERT_DIR)\z/)
    attacker = Etc.getpwnam(ATTACKER)
    assert_equal [attacker.dir, ATTACKER, attacker.shell, ATTACKER], theirs.values_at(*OF_A_LOGIN)
    assert_equal "production", theirs["RAILS_ENV"]
    assert_empty(theirs.values.grep(%r{of-root|/root(/|\z)}) - [theirs["PATH"]])
  end

  # A process with these could notify systemd as the server, or take a descriptor for a socket from systemd.
  def test_variables_of_the_service_manager_are_for_highball_alone
    server = serve_both("*", env: OF_THE_SERVICE_MANAGER)
    assert_empty variables(server).keys & OF_THE_SERVICE_MANAGER.keys
    same_user = serve(folder_with("config.ru" => VARIABLES), env: OF_THE_SERVICE_MANAGER)
    assert_empty JSON.parse(same_user.get("/").body).keys & OF_THE_SERVICE_MANAGER.keys
  end

  def test_root_may_pass_more_to_one_of_them
    server = serve_both("DATABASE_URL", "AWS_*", "MAIL", lines: "variables = { OWN = 'x' }", env: OF_ROOT)
    more = %w[AWS_SECRET_ACCESS_KEY DATABASE_URL MAIL]
    assert_equal OF_ROOT.slice(*more), variables(server).slice(*OF_ROOT.keys)
    assert_equal "x", variables(server)["OWN"]
    assert_empty variables(server, VICTIM).slice(*OF_ROOT.keys, "OWN")
  end

  def test_root_may_pass_on_all_variables_except_those_of_a_session
    server = serve_both("*", env: OF_ROOT)
    of_the_session = %w[DBUS_SESSION_BUS_ADDRESS MAIL XDG_CONFIG_HOME]
    assert_equal OF_ROOT.except(*of_the_session).keys.sort, variables(server).slice(*OF_ROOT.keys).keys.sort
  end

  def test_an_application_cannot_ask_for_more_in_its_own_file
    attacker = attacker_app("config/highball.toml" => "pass_variables = ['*']\n", "config.ru" => VARIABLES)
    configure_tenants(attacker, victim_app("config.ru" => VARIABLES))
    server = start_many(@place, env: root_env.merge(OF_ROOT))
    wait_for("the end, or an application that is not served", within: 60) do
      server.log.match?(/pass_variables/) || !server.running?
    end
    assert_match(/highball\.toml, line 1: `pass_variables` decides what Highball does with its own rights/, server.log)
  end

  def test_an_application_of_the_same_user_inherits_everything_else
    server = serve(folder_with("config.ru" => VARIABLES), env: OF_ROOT)
    assert_equal OF_ROOT, JSON.parse(server.get("/").body).slice(*OF_ROOT.keys)
  end

  def test_bundle_exec_for_another_gemfile_keeps_no_application_from_booting
    tool = app_of("root", { "Gemfile" => "# of the server\n" }, "tool")
    configure_tenants(attacker_app("config.ru" => VARIABLES), victim_app("config.ru" => VARIABLES))
    bundled = root_env.merge("BUNDLE_GEMFILE" => File.join(tool, "Gemfile"))
    server = serve_many(@place, through: [Gem.ruby, "-S", "bundle", "exec"], env: bundled)
    [ATTACKER, VICTIM].each do |user|
      assert_empty variables(server, user).keys.grep(/\ABUNDLE|\ARUBY(OPT|LIB)\z/)
    end
  end

  def test_the_application_whose_gemfile_it_is_keeps_it
    files = { "Gemfile" => "gem 'rack'\n", "config.ru" => VARIABLES }
    own = folder_with(files)
    bundled = { "BUNDLE_GEMFILE" => File.join(own, "Gemfile"), "BUNDLER_ORIG_RUBYLIB" => "/before" }
    kept = JSON.parse(serve(own, env: bundled).get("/").body)
    assert_equal bundled, kept.slice(*bundled.keys)
    other = JSON.parse(serve(folder_with(files), env: bundled).get("/").body)
    refute_equal bundled["BUNDLE_GEMFILE"], other["BUNDLE_GEMFILE"]
    assert_equal "/before", other["RUBYLIB"].to_s.split(":").last
  end

  # The diagnosis of an application that does not boot shows its environment, not root's.
  def test_a_diagnosis_shows_no_more
    attacker = attacker_app("config.ru" => "raise 'alas'\n")
    output, = HighballServer.run("doctor", "--json", "-e", "production", "-p", "0", attacker,
                                 env: env.merge(OF_ROOT), within: 60)
    shown = JSON.parse(output[output.index("{\n")..])
    assert_empty shown.dig("diagnosis", "environment").slice(*OF_ROOT.keys)
    withheld = shown["checks"].find { |check| check["name"] == "environment" }
    assert_match(/does not get these variables.*: .*AWS_SECRET_ACCESS_KEY.*SECRET_KEY_BASE/, withheld["what"])
    refute_match(/of-root/, output)
  end

  private

  # `passed` are more variables for the attacker's application.
  def serve_both(*passed, lines: "", env: {})
    pass = ->(*names) { "pass_variables = #{[HighballServer::MARK, *names]}\n" }
    serve_tenants(attacker_app("config.ru" => VARIABLES), victim_app("config.ru" => VARIABLES),
                  entries: { ATTACKER => pass.call(*passed) + lines, VICTIM => pass.call },
                  env: { "HIGHBALL_PASS_VARIABLES" => nil }.merge(env))
  end

  def variables(server, user = ATTACKER)
    answer = server.get("/", { "Host" => HOSTS.fetch(user) })
    assert_equal 200, answer.status, answer.body
    JSON.parse(answer.body)
  end
end
