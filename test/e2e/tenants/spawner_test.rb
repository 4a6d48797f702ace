# frozen_string_literal: true

require_relative "../../support/spawner_test_case"

# When root starts the server for applications of other users, a small process stays root. The process that reads
# clients' requests has no rights.
class SpawnerTest < SpawnerTestCase
  CAPABILITIES = %w[CapInh CapPrm CapEff CapBnd CapAmb].freeze

  def test_the_server_has_no_rights
    server = serve_tenants
    facts = status_of(front_of(server))
    assert_equal CAPABILITIES.to_h { |name| [name, "0000000000000000"] }, facts.slice(*CAPABILITIES)
    refute_includes facts["Uid"].split, "0"
    refute_includes facts["Gid"].split, "0"
    refute_includes facts["Groups"].split, "0"
    assert_equal "1", facts["NoNewPrivs"]
    assert_equal %w[0 0 0 0], status_of(server.pid)["Uid"].split
    refute_includes ProcessFacts.descriptors(front_of(server)), left_open
    assert_victim_serves(server)
  end

  def test_the_user_of_the_server_is_chosen
    server = serve_tenants(top: "server_user = 'www-data'", env: UNCHOSEN)
    assert_equal Etc.getpwnam("www-data").uid.to_s, status_of(front_of(server))["Uid"].split.first
    output = highball_fails("serve", "-p", "0", "--server-user", "no-such-user", attacker_app, env: env)
    assert_match(/server_user: there is no user `no-such-user`.*adduser/m, output)
  end

  def test_root_may_stay_root
    server = serve_tenants(top: "server_user = 'root'", env: UNCHOSEN)
    assert_empty children_named(server, :server)
    assert_victim_serves(server)
  end

  def test_a_folder_for_spool_files_that_the_server_cannot_use_is_an_error
    configure_tenants(attacker_app, victim_app, top: "spool_dir = '#{runtime}'")
    output = highball_fails("-e", "production", directory: @place, env: root_env)
    assert_match(/spool_dir: #{runtime} is not a folder that \w+, the user of the server, may write to/, output)
  end

  def test_only_root_has_a_spawner
    binary = File.join(@place, "highball")
    FileUtils.cp(HighballServer::BINARY, binary)
    File.chmod(0o755, binary)
    app = app_of("daemon", "config.ru" => FACTS)
    through = ["setpriv", "--reuid=daemon", "--regid=#{Etc.getpwnam('daemon').gid}", "--clear-groups"]
    command = [*through, binary, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production", "-w", "1", app]
    server = serve(app, command: command, env: env)
    names = ProcessFacts.tree(server.pid).map { |pid| name_of(pid) }
    assert_equal 1, names.grep(/highball/).length, names.inspect
  end

  # The victim's folder is closed to all but the victim: its files are opened by a process of its user.
  def test_files_are_opened_by_a_process_of_their_user
    files = { "public/own.txt" => "own" }
    server = serve_tenants(attacker_app(files), victim_app(files))
    assert_equal "own", ask_victim(server, "/own.txt").body
    assert_equal "own", ask_attacker(server, "/own.txt").body
    openers = children_named(server, :opener)
    users = openers.map { |pid| status_of(pid)["Uid"].split.uniq }
    assert_equal HOSTS.keys.map { |name| [Etc.getpwnam(name).uid.to_s] }.sort, users.uniq.sort
    openers.each { |pid| assert_empty File.read("/proc/#{pid}/environ")[/#{HighballServer::MARK}/].to_s }
  end

  # The application's user has no access to files that root has open, such as its terminal and its log.
  def test_an_opener_has_nothing_of_roots
    server = serve_tenants(attacker_app("public/own.txt" => "own"))
    assert_equal "own", ask_attacker(server, "/own.txt").body
    openers_of(server, ATTACKER).each do |pid|
      open = ProcessFacts.descriptors(pid)
      assert_equal [File::NULL] * 3, open.first(3)
      assert_match(/\Asocket:\[\d+\]\z/, open.drop(3).join(" "))
      assert_equal "/", File.readlink("/proc/#{pid}/cwd")
      # Root owns the files in /proc of a process that other processes may not look into.
      assert_predicate File.stat("/proc/#{pid}/mem"), :owned?
    end
  end

  def test_no_application_runs_as_the_user_of_the_server
    app = attacker_app
    output = highball_fails("serve", "-p", "0", "--server-user", ATTACKER, app, env: env)
    assert_match(/#{app} runs as #{ATTACKER}, and so does the server.*server_user/m, output)
    tenants = [app, victim_app]
    server = serve_tenants(*tenants, top: "server_user = 'www-data'", env: UNCHOSEN)
    configure_tenants(*tenants, entries: { ATTACKER => "user = 'www-data'" }, top: "server_user = 'www-data'")
    server.signal("HUP")
    wait_for("the refusal", within: 10) { server.log.include?("and so does the server") }
    assert_victim_serves(server)
  end

  def test_a_user_who_holds_up_its_openers_holds_up_no_other_user
    files = { "public/own.txt" => "own" }
    server = serve_tenants(attacker_app(files), victim_app(files))
    assert_equal "own", ask_attacker(server, "/own.txt").body
    stopped = openers_of(server, ATTACKER)
    as_attacker { stopped.each { |pid| Process.kill(:STOP, pid) } }
    ask_attacker(server, "/own.txt")
    assert_equal "own", ask_victim(server, "/own.txt").body
    assert_victim_serves(server)
    wait_for("the end of the stopped processes", within: 20) do
      ask_attacker(server, "/own.txt")
      (openers_of(server, ATTACKER) & stopped).empty?
    end
    wait_for("the attacker's file", within: 30) { ask_attacker(server, "/own.txt").body == "own" }
  end

  def test_openers_that_are_killed_are_replaced
    server = serve_tenants(attacker_app, victim_app("public/own.txt" => "own"))
    3.times do
      wait_for("the file", within: 10) { ask_victim(server, "/own.txt").body == "own" }
      openers_of(server, VICTIM).each { |pid| HighballServer.kill(pid) }
    end
    wait_for("the file", within: 10) { ask_victim(server, "/own.txt").body == "own" }
  end

  def test_all_ends_with_the_server_and_the_log_shows_it
    server = serve_tenants
    HighballServer.kill(front_of(server))
    assert_equal 128 + Signal.list["KILL"], server.wait(within: 20).exitstatus
    assert_empty server.orphans
  end

  def test_all_ends_with_the_spawner
    server = serve_tenants
    all = ProcessFacts.tree(server.pid)
    HighballServer.kill(server.pid)
    server.wait
    wait_for("the end of all processes", within: 10) { all.none? { |pid| ProcessFacts.alive?(pid) } }
  end

  def test_signals_reach_the_server
    server = serve_tenants(top: "workers = 1", entries: { VICTIM => "" })
    before = victims_worker(server)
    server.signal("USR1")
    wait_for("a restart", within: 30) { victims_worker(server) != before }
    server.signal("TTIN")
    wait_for("another worker", within: 30) { server_status(server)["apps"].all? { |app| app["workers"].length == 2 } }
    server.signal("TERM")
    assert_predicate server.wait, :success?
    assert_empty server.orphans
  end

  def test_an_application_of_another_user_is_added
    app_of("www-data", { "config.ru" => FACTS }, "third")
    server = serve_tenants
    file = File.join(@place, "highball.toml")
    File.write(file, "#{File.read(file)}\n[[app]]\npath = 'third'\nhosts = ['t3.test']\n")
    server.signal("HUP")
    wait_for("the third application", within: 30) { server.get("/", { "Host" => "t3.test" }).status == 200 }
    assert_runs_as "www-data", facts(server, { "Host" => "t3.test" })
    assert_victim_serves(server)
  end

  def test_what_only_root_may_do_is_done_by_the_spawner
    closed = File.join(@place, "of-root-alone")
    Dir.mkdir(closed, 0o700)
    log, pidfile = %w[access.log server.pid].map { |name| File.join(closed, name) }
    server = serve_tenants(top: "access_log = '#{log}'\npidfile = '#{pidfile}'")
    File.chmod(0o600, File.join(@place, "highball.toml"))
    assert_equal server.pid, File.read(pidfile).to_i
    ask_victim(server, "/logged")
    wait_for("the line", within: 10) { File.read(log).include?("/logged") }
    File.rename(log, "#{log}.1")
    server.signal("HUP")
    wait_for("another log", within: 10) { File.exist?(log) }
    ask_victim(server, "/again")
    wait_for("the line", within: 10) { File.read(log).include?("/again") }
    server.stop
    refute_path_exists pidfile
  end

  # As a package does: another file takes the name.
  def test_a_hot_restart_starts_the_program_that_was_installed_meanwhile
    binary, newer = %w[highball highball.new].map do |name|
      File.join(@place, name).tap { |path| FileUtils.cp(HighballServer::BINARY, path) }
    end
    path = File.join(@place, "server.sock")
    serve_at(path, [attacker_app, victim_app], binary: binary)
    File.rename(newer, binary)
    output = highball("upgrade", env: server_env, within: 60)
    assert_equal binary, File.readlink("/proc/#{output[/\(pid (\d+)\)/, 1]}/exe")
    assert_equal 200, HttpConnection.unix(path).get("/", { "Host" => HOSTS[VICTIM] }).status
  end

  # Only root may remove the files of sockets that root has created.
  def test_the_socket_of_an_address_that_comes_and_goes_with_hot_restarts_is_removed
    stays, goes = %w[stays goes].map { |name| File.join(@place, "#{name}.sock") }
    tenants = [attacker_app, victim_app]
    server = serve_at(stays, tenants)
    [[stays, goes], [stays]].each do |paths|
      configure_tenants(*tenants, top: binds(*paths))
      highball("upgrade", env: server_env, within: 60)
    end
    wait_for("the end of the address", within: 20) { !File.exist?(goes) }
    assert_equal 200, HttpConnection.unix(stays).get("/", { "Host" => HOSTS[VICTIM] }).status
    server.stop
    refute_path_exists stays
  end

  def test_memory_lists_the_processes_of_all_users
    server = serve_tenants
    output = highball("memory", "--json", *server.which, env: server_env)
    roles = JSON.parse(output)["highball"].first["processes"].to_h { |process| process.values_at("pid", "role") }
    ruby = server_status(server)["apps"].flat_map { |app| [app.dig("mold", "pid"), app.dig("workers", 0, "pid")] }
    assert_empty ruby - roles.keys, output
    assert_equal [[server.pid, "highball"], [front_of(server), "server"]], roles.first(2)
    assert_equal %w[highball mold opener server worker], roles.values.uniq.sort
  end

  def test_the_spawner_sleeps_while_clients_are_served
    server = serve_tenants(attacker_app("public/own.txt" => "own"))
    ask_attacker(server, "/own.txt")
    trace = File.join(@place, "trace")
    strace = Process.spawn("strace", "-f", "-o", trace, "-p", server.pid.to_s, err: File.join(@place, "strace"))
    wait_for("strace", within: 10) { File.read(File.join(@place, "strace")).match?(/attached/) }
    20.times do
      answers = [ask_attacker(server), ask_attacker(server, "/own.txt"), ask_victim(server)]
      assert_equal [200, 200, 200], answers.map(&:status)
    end
    assert_empty calls(trace), "requests concern it in no way"
    server.signal("USR1")
    wait_for("a restart", within: 30) { server.log.scan("restarted: the new version serves").length == 2 }
    opened = calls(trace).grep(/\A\d+ +open/).grep_v(%r{"(/proc/|/dev/null")})
    own = opened.select { |call| call.start_with?("#{server.pid} ") }
    assert_empty own, "it opens nothing but what the kernel says of processes"
  ensure
    HighballServer.kill(strace, "INT") if strace
    Process.wait(strace) if strace
  end

  private

  def serve_at(path, tenants, binary: HighballServer::BINARY)
    configure_tenants(*tenants, top: binds(path))
    command = [binary, "-e", "production", "-w", "1"]
    server = HighballServer.new(@place, command: command, env: root_env, bind: path).tap { |one| @servers << one }
    wait_for("the server", within: HighballServer::SERVES_WITHIN) { server.log.include?("serving on") }
    server
  end

  def binds(*paths) = "bind = #{paths.map { |path| "unix:#{path}" }}\ndrain_timeout = '1s'"

  # System calls, except for the waiting one.
  def calls(trace)
    File.readlines(trace).grep_v(/resumed|\A\d+ +(restart_syscall|poll|ppoll)\(|SIG|strace: /)
  end
end
