# frozen_string_literal: true

require "json"
require_relative "../../support/e2e_test"
require_relative "../../support/puma_fixtures"

# An application that has a config/puma.rb and no highball.toml: what counts, what runs when, and how mistakes
# are reported.
class PumaConfigTest < E2ETest
  # Answers with what it was given.
  APP = <<~'RUBY'
    require "json"
    run lambda { |env|
      raise "no luck" if env["PATH_INFO"] == "/raise"

      facts = { "scheme" => env["rack.url_scheme"], "environment" => ENV["RAILS_ENV"], "pid" => Process.pid,
                "hooks" => $hooks, "multithread" => env["rack.multithread"] }
      [200, {}, [JSON.generate(facts)]]
    }
  RUBY

  def setup
    super
    skip "the server is another user than the application's owner" if ENV["HIGHBALL_SERVER_USER"]
  end

  # --- settings

  def test_settings_count
    folder = app("puts 'printed by puma.rb'\nenvironment 'staging'\nworkers 2\nthreads 1, 1\nport 0\n" \
                 "pidfile 'highball.pid'\nquiet\n")
    server = start(folder)
    assert_equal ["staging", false], facts(server).values_at("environment", "multithread")
    assert_equal 2, server.status["workers_wanted"]
    assert_equal server.pid.to_s, File.read(File.join(folder, "highball.pid")).strip
  end

  def test_addresses
    socket = File.join(folder_with, "puma.sock")
    folder = app("bind 'unix://#{socket}?umask=0111'\nbind 'tcp://127.0.0.1:0'\n")
    server = serve(folder, command: command, bind: socket)
    assert_equal 200, server.get("/").status
    assert_match(%r{config/puma\.rb:1: `bind`: umask of the address has no effect}, server.log)
    assert_equal 200, HttpConnection.tcp(server.port).get("/").status
  end

  def test_what_outweighs_what
    folder = app("workers 3\nthreads 7\nport 0\n")
    [[{}, 3], [{ "WEB_CONCURRENCY" => "2" }, 3], [{ "HIGHBALL_WORKERS" => "2" }, 2]].each do |env, workers|
      server = start(folder, env: env)
      assert_equal workers, server.status["workers_wanted"], env.inspect
    end
    assert_equal 1, start(folder, "-w", "1").status["workers_wanted"]
    assert_equal "test",
                 facts(start(app("environment 'production'\nport 0\n"), env: { "RAILS_ENV" => "test" }))["environment"]
  end

  def test_a_port_on_the_command_line_takes_the_place_of_addresses
    socket = File.join(folder_with, "puma.sock")
    server = serve(app("bind 'unix://#{socket}'\n"), command: command("-p", "0"))
    assert_equal 200, server.get("/").status
    refute_path_exists socket
  end

  def test_no_workers_are_one_worker
    assert_equal 1, start(app("workers 0\nport 0\n"), "-e", "production").status["workers_wanted"]
    server = start(folder_with("config.ru" => APP), "-p", "0", "-e", "production", env: { "WEB_CONCURRENCY" => "0" })
    assert_equal 1, server.status["workers_wanted"]
  end

  def test_a_file_for_the_environment_goes_before
    folder = app("workers 2\n", "config/puma/production.rb" => "workers 3\nport 0\n")
    assert_equal 3, start(folder, "-e", "production").status["workers_wanted"]
  end

  # Each option comes from the first file that sets it, and the hooks run.
  def test_highballs_own_file_goes_before_for_what_it_sets
    folder = app("workers 2\nthreads 7\nport 0\n$hooks = []\nbefore_fork { $hooks << 'before_fork' }\n",
                 "config/highball.toml" => "threads = 1\nbind = '127.0.0.1'\n")
    server = start(folder)
    assert_equal [false, ["before_fork"]], facts(server).values_at("multithread", "hooks")
    assert_equal 2, server.status["workers_wanted"]
    assert_includes server.log, "config/puma.rb is read, for what config/highball.toml does not set; it sets port, " \
                                "workers; outweighed: threads by config/highball.toml"
  end

  def test_init_changes_nothing_of_what_it_says
    folder = app("workers 2\nport ENV.fetch('PORT', 3000)\n$hooks = []\nbefore_fork { $hooks << 'before_fork' }\n")
    output = highball("init", folder)
    assert_match(%r{^left alone +config/puma\.rb +it counts for what config/highball\.toml does not set}, output)
    server = start(folder, env: { "PORT" => "0" })
    assert_equal 2, server.status["workers_wanted"]
    assert_equal ["before_fork"], facts(server)["hooks"]
    output, = HighballServer.run("doctor", "--user", Process.uid.to_s, folder, within: 60)
    assert_match(%r{^ok +puma: config/puma\.rb is read, for what config/highball\.toml does not set; it sets port, w},
                 output)
  end

  def test_it_can_be_turned_off
    folder = app("raise 'not to be read'\n",
                 "config/highball.toml" => "puma_config = false\nworkers = 2\nport = 0\nbind = '127.0.0.1'\n")
    server = start(folder)
    assert_equal [2, nil], [server.status["workers_wanted"], facts(server)["hooks"]]
    assert_match(%r{config/puma\.rb is not read, as puma_config is off}, server.log)
  end

  # After HUP as at the start: what a new file sets goes before, and turning the old one off ends its hooks.
  def test_hup_takes_a_highball_toml_that_is_new
    folder = app("port 0\nworkers 1\n$hooks = 'from puma.rb'\n")
    server = start(folder)
    own = File.join(folder, "config/highball.toml")
    File.write(own, "workers = 2\n")
    server.signal("HUP")
    wait_for("two workers", within: 30) { server.status["workers_wanted"] == 2 }
    assert_equal "from puma.rb", facts(server)["hooks"]
    File.write(own, "workers = 2\npuma_config = false\n")
    server.signal("HUP")
    wait_for("the hooks' end", within: 60) { facts(server)["hooks"].nil? }
  end

  def test_one_that_is_named
    folder = folder_with("config.ru" => APP, "shared/puma.rb" => "workers 2\nport 0\n",
                         "highball.toml" => "workers = 3\n")
    server = start(folder, "-C", "shared/puma.rb")
    assert_equal 2, server.status["workers_wanted"]
  end

  def test_the_gems_of_the_gemfile_can_be_required
    skip "needs Bundler" unless system("bundle --version", out: File::NULL, err: File::NULL)
    folder = app("require 'rack'\nport 0\nthreads Gem.loaded_specs.key?('minitest') ? 2 : 1\n",
                 "Gemfile" => "gem 'rack'\n")
    refute facts(start(folder))["multithread"]
  end

  def test_another_rackup_file
    folder = app("rackup 'other.ru'\nport 0\n", "other.ru" => "run ->(_) { [200, {}, ['the other']] }\n")
    assert_equal "the other", start(folder).get("/").body
  end

  # --- hooks

  def test_hooks_run_at_their_moments
    folder = app(<<~RUBY)
      port 0
      workers 2
      $hooks = []
      before_fork { $hooks << ["before_fork", Process.pid] }
      before_worker_fork { |number| $hooks << ["before_worker_fork", number] }
      on_worker_boot { |number| $hooks << ["on_worker_boot", number] }
      before_worker_boot(:key) { |_number, data| $hooks << ["with data", data.class.name] }
      before_thread_start { $hooks << ["before_thread_start", Thread.current != Thread.main] }
      after_booted { warn "booted in \#{Process.pid}" }
      before_worker_shutdown { |number| warn "worker \#{number} shuts down" }
      rack_url_scheme "https"
    RUBY
    server = start(folder)
    found = facts(server)
    assert_equal "https", found["scheme"]
    ran = found["hooks"]
    assert_includes ran, ["before_fork", server.mold_pid]
    assert_includes [0, 1], ran.assoc("on_worker_boot").last
    assert_equal [["with data", "Hash"], ["before_thread_start", true]],
                 [ran.assoc("with data"), ran.assoc("before_thread_start")]
    assert_equal 0, ran.assoc("before_worker_fork").last
    wait_for("the mold's hook") { server.log.include?("booted in #{server.mold_pid}") }
    assert_equal 0, server.stop.exitstatus
    assert_match(/worker 0 shuts down/, server.log)
  end

  def test_an_error_handler_answers
    server = start(app(<<~RUBY))
      port 0
      environment "production"
      lowlevel_error_handler { |error, env, status| [status, {}, ["handled \#{error.message} at \#{env['PATH_INFO']}"]] }
    RUBY
    answer = server.get("/raise")
    assert_equal [500, "handled no luck at /raise"], [answer.status, answer.body]
    assert_match(/RuntimeError: no luck/, server.log)
  end

  def test_a_hook_that_raises_is_reported_and_keeps_nothing_from_serving
    server = start(app("port 0\nbefore_fork { raise 'first' }\nbefore_worker_boot do\n  raise 'second'\nend\n"))
    assert_equal 200, server.get("/").status
    assert_match(%r{config/puma\.rb:2: before_fork raised RuntimeError: first}, server.log)
    assert_match(%r{config/puma\.rb:3: before_worker_boot raised RuntimeError: second}, server.log)
  end

  def test_a_restart_takes_the_hooks_as_they_are_now
    folder = app("port 0\n$hooks = 'before'\n")
    server = start(folder)
    assert_equal "before", facts(server)["hooks"]
    File.write(File.join(folder, "config/puma.rb"), "port 0\n$hooks = 'after'\n")
    highball("restart", *server.which)
    assert_equal "after", facts(server)["hooks"]
  end

  def test_hup_reads_the_settings_again
    folder = app("port 0\nworkers 1\n")
    server = start(folder)
    File.write(File.join(folder, "config/puma.rb"), "port 0\nworkers 2\n")
    server.signal("HUP")
    wait_for("two workers", within: 30) { server.status["workers_wanted"] == 2 }
    File.write(File.join(folder, "config/puma.rb"), "port 0\nnonsense(\n")
    server.signal("HUP")
    wait_for("the refusal", within: 30) { server.log.match?(%r{keeping the old one.*\n?.*config/puma\.rb}) }
    assert_equal 200, server.get("/").status
  end

  # --- mistakes

  def test_a_mistake_ends_the_start_with_file_and_line
    { "threads 1\nraise 'no luck'\n" => /line 2: RuntimeError: no luck; correct it/,
      "threads 1\n\nrequire 'no_such_gem_here'\n" => /line 3: LoadError/, "threads(\n" => /SyntaxError/,
      "workers 1000\n" => /line 1, workers: `1000` is not a whole number from 0 to 512/,
      "bind 'tcp://example.org:3000'\n" => /line 1, bind: .*host names are not looked up/,
      "Process.kill(:KILL, Process.pid)" => /Ruby could not evaluate it/ }.each do |text, message|
      output, ended = HighballServer.run("serve", app(text))
      assert_equal 2, ended.exitstatus, output
      assert_match(%r{\Ahighball: configuration file \S+/config/puma\.rb}, output)
      assert_match message, output
    end
  end

  def test_what_a_file_does_ends_with_the_start
    folder = app("File.write('pid', Process.pid)\nsystem('sleep 1000')\n")
    pid = Process.spawn(HighballServer::ENVIRONMENT, HighballServer::BINARY, "-p", "0", folder,
                        in: File::NULL, %i[out err] => File::NULL)
    wait_for("config/puma.rb") { File.size?(File.join(folder, "pid")) }
    HighballServer.kill(pid)
    Process.wait(pid)
    evaluating = File.read(File.join(folder, "pid")).to_i
    wait_for("its end") { !ProcessFacts.alive?(evaluating) }
  end

  def test_several_applications
    one = app("workers 2\nport 1\n")
    two = app("raise 'no luck'\n")
    server = start(one, "-p", "0", "-e", "production", one, two)
    apps = server.status["apps"]
    by_folder = ->(folder) { apps.find { |found| found["name"] == File.basename(folder) } }
    assert_equal 2, by_folder[one]["workers_wanted"]
    wait_for("the failure") { server.log.match?(%r{config/puma\.rb, line 1: RuntimeError: no luck}) }
    assert_match(%r{config/puma\.rb:2: `port`: This is an option of the server, and does not count}, server.log)
  end

  def test_doctor_lists_what_is_not_carried_out
    folder = app("port 0\nworkers 2\nplugin :litestream\nssl_bind '0.0.0.0', 443\n")
    output = highball("doctor", "--user", Process.uid.to_s, folder, within: 60)
    assert_match(%r{^ok +puma: config/puma\.rb is read}, output)
    assert_match(
      /^warning +puma_statement: `plugin :litestream`: The plugin does not run\.\n +at: \S+puma.rb:3\n.*--with lite/,
      output
    )
    assert_match(/^warning +puma_statement: `ssl_bind`/, output)
  end

  # --- habits

  def test_options_and_commands_of_puma
    folder = folder_with("config.ru" => APP)
    server = serve(folder,
                   command: [HighballServer::BINARY, "start", "-b", "127.0.0.1", "-p", "0", "-t", "0:5", folder])
    assert facts(server)["multithread"]
    { "-v" => /--version.*--access-log -/, "--preload" => /leave it out/, "--dir=/srv" => /the application's folder/,
      "phased-restart" => /highball restart/, "stats" => /highball status --json/, "halt" => /highball stop/ }
      .each do |word, message|
      output, ended = HighballServer.run(word)
      assert_equal 2, ended.exitstatus, output
      assert_match message, output
    end
  end

  private

  def app(puma, files = {}) = folder_with({ "config.ru" => APP, "config/puma.rb" => puma }.merge(files))
  def command(*arguments) = [HighballServer::BINARY, "serve", *arguments]

  # Serves at a port of this machine, with nothing else given but these options.
  def start(folder, *options, **settings)
    serve(folder, command: command("-b", "127.0.0.1", *options), **settings)
  end

  def facts(server) = JSON.parse(server.get("/").body)
end
