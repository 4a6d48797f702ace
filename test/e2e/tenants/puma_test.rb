# frozen_string_literal: true

require_relative "../../support/tenant_config_test_case"

# A tenant's config/puma.rb is Ruby: root does not evaluate it, and it decides nothing about the server.
class TenantPumaTest < TenantConfigTestCase
  def test_root_does_not_evaluate_it
    app = attacker_app(attack)
    server = serve_tenants(app)
    assert_both_serve(server)
    assert_equal [ATTACKER], users_of_proofs, "only its own processes run its hooks"
    assert_root_file_untouched
    assert_match(
      %r{attacker/config/puma\.rb:7: its settings are not read, as root has started Highball, .* runs as #{ATTACKER}},
      server.log
    )
    write(app, FILE, "port = 1\n")
    server.signal("HUP")
    wait_for("the configuration to be read again", within: 30) { server.log.include?("keeping the old one") }
    assert_equal [ATTACKER], users_of_proofs
  end

  def test_nor_where_it_is_the_only_application
    app = attacker_app(attack)
    server = serve_as_root(app)
    assert_runs_as ATTACKER, facts(server)
    assert_equal [ATTACKER], users_of_proofs
    output, = HighballServer.run("doctor", "-e", "production", app, env: env, within: 60)
    assert_match(/its settings are not read/, output)
    output, = HighballServer.run("config", "nginx", app, env: env)
    refute_includes output, "evil.sock"
    assert_equal [ATTACKER], users_of_proofs
    assert_root_file_untouched
  end

  # It names an address, and no other source does.
  def test_its_address_is_not_lost
    assert_refused(%r{config/puma\.rb, line 7: its settings are not read.* --bind}, attacker_app(attack))
    assert_empty proofs
  end

  # Its highball.toml goes before it, and may turn it off: that is no right of the server's.
  def test_beside_a_highball_toml
    app = attacker_app(attack.merge("config/highball.toml" => "threads = 1\n"))
    server = serve_as_root(app)
    assert_runs_as ATTACKER, facts(server)
    assert_equal [ATTACKER], users_of_proofs, "only its own processes run its hooks"
    assert_match(/config.puma\.rb(?::\d+)?: its settings are not read, as root has started Highball/, server.log)
    server.stop
    FileUtils.rm(Dir[File.join(@proof, "*")])
    write(app, "config/highball.toml", "puma_config = false\n")
    server = serve_as_root(app)
    assert_runs_as ATTACKER, facts(server)
    assert_empty proofs
    assert_match(/config.puma\.rb is not read, as puma_config is off/, server.log)
    assert_root_file_untouched
  end

  def test_a_file_of_the_tenants_in_an_application_of_roots_is_not_even_loaded
    app = app_of("root", { "config.ru" => FACTS }.merge(attack), "roots-app")
    File.chown(Etc.getpwnam(ATTACKER).uid, nil, File.join(app, "config/puma.rb"))
    server = serve_as_root(app)
    assert_equal 200, server.get("/").status
    assert_empty proofs
    assert_match(/it is not read, and its hooks do not run, as this file belongs to #{ATTACKER}/, server.log)
  end

  def test_a_link_to_it_from_an_application_of_roots
    home = app_of(ATTACKER, attack.transform_keys { |name| File.basename(name) }, "home")
    app = app_of("root", { "config.ru" => FACTS, "config/.keep" => "" }, "roots-app")
    FileUtils.ln_s(File.join(home, "puma.rb"), File.join(app, "config/puma.rb"))
    server = serve_as_root(app)
    assert_equal 200, server.get("/").status
    assert_empty proofs
  end

  def test_one_that_is_named_is_not_evaluated_for_a_tenants_application
    of_root = File.join(@place, "puma.rb")
    File.write(of_root, attack.values.first)
    output, ended = HighballServer.run("serve", "-C", of_root, attacker_app, env: env, within: 60)
    assert_equal 2, ended.exitstatus, output
    assert_match(/it is not evaluated, as root has started Highball/, output)
    assert_empty proofs
  end

  private

  # Each process that evaluates it leaves a file. It would also take an address and a file of the server's.
  def attack
    { "config/puma.rb" => <<~RUBY }
      File.write("#{@proof}/\#{Process.pid}", Process.euid.to_s)
      begin
        File.write("#{@root_file}", "attacked")
      rescue SystemCallError
        nil
      end
      bind "unix://#{@place}/evil.sock"
      pidfile "#{@place}/evil.pid"
      workers 7
    RUBY
  end

  def users_of_proofs
    proofs.map { |name| Etc.getpwuid(File.read(File.join(@proof, name)).to_i).name }.uniq
  end
end
