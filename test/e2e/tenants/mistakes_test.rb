# frozen_string_literal: true

# marks: long

require_relative "../../support/tenant_config_test_case"
require_relative "../../support/unanswered_files"

# A mistake in the configuration file or the folder of one tenant fails that tenant's application only, both at the
# start and after HUP.
class TenantMistakesTest < TenantConfigTestCase
  include UnansweredFiles

  # Mistakes of a tenant: the content of the file, and the error message.
  MISTAKES = {
    "port 80" => /line 1/,
    "# fine\nthreds = 1" => /line 2: there is no option `threds`; did you mean `threads`/,
    "threads = 0" => /line 1, threads: `0` is not a whole number/,
    "user = 'root'" => /line 1: `user` decides what Highball does with its own rights/,
    "user = 'daemon'" => /line 1: `user`/,
    "ruby = '/nowhere/ruby'" => %r{`/nowhere/ruby` is not a program},
    "hosts = ['t2.test']" => /line 1: `hosts` decides where an application is reached/,
    "[[app]]\npath = '/usr'" => /line 1: an application's own file names no applications/,
    "variables = ['no variable']" => /NAME=VALUE/
  }.freeze

  def test_a_mistake_fails_that_application_and_no_other
    app = attacker_app
    MISTAKES.each do |text, message|
      write(app, FILE, text)
      server = serve_tenants(app)
      assert_failed(server, message)
      assert_equal 503, ask_attacker(server).status
      assert_victim_serves(server)
      server.stop
      assert_refused(message, app) unless text.start_with?("hosts")
    end
  end

  def test_what_is_no_file_fails_that_application_and_no_other
    app = attacker_app
    path = File.join(app, FILE)
    make = { "a folder" => -> { FileUtils.mkdir_p(path) }, "a FIFO" => -> { File.mkfifo(path) },
             "a device" => -> { FileUtils.ln_s("/dev/zero", path) }, "itself" => -> { FileUtils.ln_s(path, path) },
             "a large one" => -> { File.open(path, "w") { |file| file.truncate(1 << 40) } },
             "a closed one" => -> { File.write(path, "", perm: 0o000) },
             "a terminal" => -> { FileUtils.ln_s("/dev/tty", path) } }
    make.each_value do |how|
      FileUtils.rm_rf(path)
      as_attacker { FileUtils.mkdir_p(File.dirname(path)) && how.call }
      server = serve_tenants(app)
      assert_failed(server, /configuration file #{path}: /)
      assert_victim_serves(server)
      server.stop
    end
  end

  def test_a_folder_that_cannot_be_used_fails_that_application_and_no_other
    home = home_of_attacker
    at = File.join(home, "attacker")
    closed = File.join(@place, "closed").tap { |path| FileUtils.mkdir_p("#{path}/in_there") && File.chmod(0o700, path) }
    make = { "nothing" => -> {}, "a link to nothing" => -> { FileUtils.ln_s("/nowhere", at) },
             "a FIFO" => -> { File.mkfifo(at) }, "a circle" => -> { FileUtils.ln_s(at, at) },
             "a link to what it may not look into" => -> { FileUtils.ln_s("#{closed}/in_there", at) } }
    make.each_value do |how|
      FileUtils.rm_rf(at)
      as_attacker(&how)
      server = serve_tenants(at)
      assert_failed(server, //)
      assert_victim_serves(server)
      server.stop
    end
  end

  def test_a_mistake_is_corrected_by_hup
    app = attacker_app(FILE => "threds = 2\n")
    server = serve_tenants(app)
    assert_failed(server, /threds/)
    victim = facts(server, { "Host" => HOSTS[VICTIM] })["pid"]
    write(app, FILE, "threads = 2\n")
    server.signal("HUP")
    wait_for("the application", within: 30) { ask_attacker(server).status == 200 }
    assert_runs_as ATTACKER, facts(server, { "Host" => HOSTS[ATTACKER] })
    assert_equal 2, app_status(server, "attacker")["workers"].first["threads"]
    assert_equal victim, facts(server, { "Host" => HOSTS[VICTIM] })["pid"]
  end

  def test_an_application_without_a_folder_becomes_a_site_by_hup
    home = home_of_attacker
    server = serve_tenants(File.join(home, "attacker"))
    assert_failed(server, /does not exist/)
    app_of(ATTACKER, { "index.html" => "a site" }, "home/attacker")
    server.signal("HUP")
    wait_for("the site", within: 30) { ask_attacker(server).status == 200 }
    assert_equal "a site", ask_attacker(server).body
  end

  def test_a_serving_application_goes_on_unchanged_when_hup_finds_a_mistake
    app = attacker_app(FILE => "threads = 2\n")
    server = serve_tenants(app)
    before = facts(server, { "Host" => HOSTS[ATTACKER] })["pid"]
    write(app, FILE, "threads = 0\n")
    configure_tenants(app, File.join(@place, "victim"), entries: { VICTIM => "threads = 5" })
    server.signal("HUP")
    wait_for("the change to the other", within: 30) do
      app_status(server, "victim")["workers"].map { |worker| worker["threads"] } == [5]
    end
    assert_equal before, facts(server, { "Host" => HOSTS[ATTACKER] })["pid"]
    assert_match(/line 1, threads/, app_status(server, "attacker")["last_failure"])
    assert_match(/ERROR .*keeping the old one/, server.log)
    # Root's settings still apply.
    host = HOSTS[ATTACKER]
    File.write(File.join(@place, "highball.toml"), File.read(File.join(@place, "highball.toml")).sub(host, "t3.test"))
    server.signal("HUP")
    wait_for("the other host", within: 30) { server.get("/", { "Host" => "t3.test" }).status == 200 }
    assert_equal 404, server.get("/", { "Host" => host }).status
  end

  def test_one_that_is_added_with_a_mistake_is_failed
    victim = victim_app
    File.write(File.join(@place, "highball.toml"),
               entry(victim) + entry(app_of("root", { "config.ru" => FACTS }, "own")))
    server = serve_as_root(@place)
    app = attacker_app(FILE => "threds = 1\n")
    configure_tenants(app, victim)
    server.signal("HUP")
    wait_for("it to be there", within: 30) { server_status(server)["apps"].any? { |one| one["name"] == "attacker" } }
    assert_failed(server, /threds/)
    assert_victim_serves(server)
  end

  def test_in_development_the_page_shows_it_and_is_reloaded
    app = attacker_app(FILE => "\nthreds = 2\n")
    server = serve_tenants_by_name(app, victim_app, environment: "development")
    html = { "Accept" => "text/html", "Host" => "attacker.localhost" }
    page = server.get("/", html, within: 30)
    assert_equal 503, page.status
    ["there is no option", "did you mean", "highball.toml", "reading the configuration"].each do |words|
      assert_includes page.body, words
    end
    write(app, FILE, "threads = 2\n")
    wait_for("the application", within: 30) { server.get("/", html, within: 30).status == 200 }
  end

  def test_a_file_system_that_does_not_answer_when_the_configuration_is_read
    app = attacker_app(FILE => "threads = 2\n")
    server = serve_tenants(app)
    without_answer(File.join(app, FILE)) do
      server.signal("HUP")
      assert_victim_serves(server)
      wait_for("the complaint", within: 60) { server.log.include?("the file system does not answer") }
      assert_victim_serves(server)
      phases = server_status(server)["apps"].map { |one| one["phase"] }
      assert_equal %w[serving serving], phases
    end
    write(app, FILE, "threads = 4\n")
    server.signal("HUP")
    wait_for("the change", within: 60) { app_status(server, "attacker")["workers"].map { |one| one["threads"] } == [4] }
  end

  def test_doctor_names_the_application_with_the_mistake
    configure_tenants(attacker_app(FILE => "threds = 1\n"), victim_app)
    output, ended = HighballServer.run("doctor", "--json", "-e", "production", "-p", "0", @place, env: env, within: 60)
    assert_equal 1, ended.exitstatus, output
    examined = JSON.parse(output[output.index("{\n")..])
    assert_equal "invalid_configuration", examined["attacker"].dig("diagnosis", "cause")
    refute_equal "failed", examined["victim"]["state"]
    assert_match(/line 1: there is no option `threds`/, output)
  end
end
