# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Files of users that tenants write: they are read with the tenant's rights, and hold up the tenant alone.
class TenantBasicAuthTest < TenantsTestCase
  PASSWORD = "swordfish"
  LINE = "ann:#{PASSWORD.crypt('$2y$04$abcdefghijklmnopqrstuu')}\n".freeze
  BY_ANN = { "Authorization" => "Basic #{["ann:#{PASSWORD}"].pack('m0')}" }.freeze

  def test_a_tenant_protects_its_application_by_its_own_configuration
    app = attacker_app("config/htpasswd" => LINE, "config/highball.toml" => "basic_auth = 'config/htpasswd'\n")
    server = serve_tenants(app)
    assert_equal 401, ask_attacker(server).status
    assert_equal 200, ask_attacker(server, "/", BY_ANN).status
    assert_victim_serves(server)
  end

  def test_files_of_root_and_of_other_tenants_are_not_read
    of_victim = victim_app("config/htpasswd" => LINE)
    File.write(@root_file, LINE)
    [@root_file, File.join(of_victim, "config/htpasswd")].each_with_index do |file, number|
      app = attacker_app("config/highball.toml" => "basic_auth = 'config/htpasswd'\n")
      FileUtils.ln_sf(file, File.join(app, "config/htpasswd"))
      server = serve_tenants(app, of_victim)
      assert_equal [401, 500], [ask_attacker(server), ask_attacker(server, "/", BY_ANN)].map(&:status), file
      assert_includes server.log, "may not open it"
      assert_victim_serves(server)
      server.stop
      FileUtils.rm_rf(app) if number.zero?
    end
  end

  def test_a_pipe_holds_up_nothing
    app = attacker_app("config/highball.toml" => "basic_auth = 'config/htpasswd'\n")
    File.mkfifo(File.join(app, "config/htpasswd"))
    server = serve_tenants(app)
    3.times { assert_equal 500, ask_attacker(server, "/", BY_ANN).status }
    assert_victim_serves(server)
  end

  # The password of one application is none of another's.
  def test_applications_have_their_own_users
    entries = { ATTACKER => "basic_auth = '#{File.join(@place, 'attacker/htpasswd')}'",
                VICTIM => "basic_auth = '#{File.join(@place, 'victim/htpasswd')}'" }
    other = "ann:#{'other'.crypt('$2y$04$abcdefghijklmnopqrstuu')}\n"
    server = serve_tenants(attacker_app("htpasswd" => LINE), victim_app("htpasswd" => other), entries: entries)
    assert_equal [200, 401], [ask_attacker(server, "/", BY_ANN), ask_victim(server, "/", BY_ANN)].map(&:status)
  end
end
