# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Maintenance where root serves applications of several users: each switches its own, and leads root nowhere.
class TenantMaintenanceTest < TenantsTestCase
  FILE = "tmp/maintenance.json"

  def test_an_owner_switches_its_own_application_and_no_other
    attacker = attacker_app
    victim = victim_app
    server = serve_tenants(attacker, victim)
    as_attacker { make(attacker, "") }
    wait_for("the maintenance") { ask_attacker(server).status == 503 }
    assert_victim_serves(server)
    as_attacker { File.unlink(File.join(attacker, FILE)) }
    wait_for("its end") { ask_attacker(server).status == 200 }
    as_user(VICTIM) { make(victim, "") }
    wait_for("the other's") { ask_victim(server).status == 503 }
    assert_equal 200, ask_attacker(server).status
  end

  def test_root_switches_with_the_rights_of_the_owner
    attacker = attacker_app
    server = serve_tenants(attacker)
    assert_includes switch(server, "on", "attacker"), "attacker: visitors get 503"
    assert_equal 503, ask_attacker(server).status
    assert_victim_serves(server)
    found = File.stat(File.join(attacker, FILE))
    assert_equal [Etc.getpwnam(ATTACKER).uid, 0o600], [found.uid, found.mode & 0o777]
    switch(server, "off", "attacker")
    assert_equal 200, ask_attacker(server).status
  end

  # The folder and the file may be links: to a folder of root, to its file, or to the other tenant's.
  def test_links_do_not_lead_root
    attacker = attacker_app
    victim = victim_app
    server = serve_tenants(attacker, victim)
    [@place, victim].each do |folder|
      as_attacker { File.symlink(folder, File.join(attacker, "tmp")) }
      assert_match(/cannot write .*maintenance/, switch_fails(server, "on", "attacker"))
      as_attacker { File.unlink(File.join(attacker, "tmp")) }
      assert_empty Dir.glob("#{folder}/**/maintenance*", File::FNM_DOTMATCH) - [File.join(attacker, FILE)]
    end
    as_attacker { Dir.mkdir(File.join(attacker, "tmp")) }
    [@root_file, File.join(victim, "config.ru")].each do |file|
      as_attacker { File.symlink(file, File.join(attacker, FILE)) }
      %w[on off].each { |what| switch_fails(server, what, "attacker") }
      as_attacker { File.unlink(File.join(attacker, FILE)) }
      assert_path_exists file
    end
    assert_root_file_untouched
    assert_victim_serves(server)
  end

  # What the attacker cannot read keeps its own visitors out, and is shown to nobody.
  def test_files_of_root_are_not_read
    attacker = attacker_app
    Dir.mkdir(File.join(attacker, "tmp"))
    File.symlink(@root_file, File.join(attacker, FILE))
    server = serve_tenants(attacker)
    assert_equal 503, ask_attacker(server).status
    assert_victim_serves(server)
    [server.log, ask_attacker(server).body, JSON.generate(server_status(server))].each do |text|
      refute_includes text, SECRET
    end
  end

  def test_a_pipe_holds_up_nothing
    attacker = attacker_app
    Dir.mkdir(File.join(attacker, "tmp"))
    File.mkfifo(File.join(attacker, FILE))
    server = serve_tenants(attacker)
    3.times { assert_equal 503, ask_attacker(server).status }
    assert_victim_serves(server)
  end

  private

  def make(app, text)
    FileUtils.mkdir_p(File.join(app, "tmp"))
    File.write(File.join(app, FILE), text)
  end

  def switch(server, *arguments) = highball("maintenance", *arguments, *server.which, env: server_env)

  def switch_fails(server, *arguments) = highball_fails("maintenance", *arguments, *server.which, env: server_env)
end
