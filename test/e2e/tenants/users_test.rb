# frozen_string_literal: true

require_relative "../../support/users_test_case"

# Applications that run as different users, started by root.
class UsersTest < UsersTestCase
  TWO = %w[games daemon].freeze
  SECRET = "for one application only"

  def test_each_application_runs_as_its_owner_whatever_replaces_its_processes
    server = serve_two_users
    runs_as_owners(server)
    { "a restart" => %w[restart games], "a refork" => %w[refork games], "a hot restart" => %w[upgrade] }
      .each do |what, command|
      before = pid_of(server, "games")
      highball(*command, *server.which, env: server_env, within: 60)
      wait_for("the processes after #{what}", within: 30) { pid_of(server, "games") != before }
      runs_as_owners(server)
    end
    now = server_status(server)
    assert_equal(TWO, now["apps"].map { |app| app["user"] })
    HighballServer.kill(now["apps"].first.dig("mold", "pid"))
    HighballServer.kill(now["apps"].first.dig("workers", 0, "pid"))
    wait_for("another worker", within: 30) { pid_of(server, "games") != now["apps"].first.dig("workers", 0, "pid") }
    runs_as_owners(server)
  end

  def test_files_and_memory_of_one_application_are_out_of_reach_for_the_other
    server = serve_two_users
    _games, daemon = processes(server)
    [*daemon, server.pid].product(%w[environ mem maps fd/0]) do |pid, file|
      path = "/proc/#{pid}/#{file}"
      assert_equal "Errno::EACCES", facts(server, { "Host" => "games" }, read: path)["read"], path
    end
  end

  def test_no_process_has_anything_open_of_another_application
    server = serve_two_users
    games, daemon = processes(server)
    own, others = [games, daemon].map { |pids| pids.map { |pid| private_files(pid) }.reduce(:merge) }
    assert_empty own.slice(*others.keys)
    assert_empty [*own, *others].map(&:last) & listening_sockets
    mold = private_files(games.first).values
    assert_operator mold.length, :<=, 3, "#{mold}: its control socket, and what Ruby wakes itself by"
    rings = [*games, *daemon].map { |pid| rings(pid) }
    assert_equal [0, 1, 0, 1], rings.map(&:length), "only a worker has a ring, its own"
    assert_equal 2, rings.flatten.uniq.length
    assert_includes ProcessFacts.descriptors(server.pid), left_open
    [*games, *daemon].each { |pid| refute_includes ProcessFacts.descriptors(pid), left_open }
  end

  # Root could signal any process whose pidfd it receives.
  def test_a_worker_cannot_pass_another_process_off_as_itself
    forged = "Highball::Native.define_singleton_method(:pidfd) { Kernel.syscall(434, Process.ppid, 0) }\n"
    app = app_of("games", "config.ru" => "#{forged}#{FACTS}")
    server = serve_as_root(app, app_of("daemon", "config.ru" => FACTS), environment: "development")
    server.connect do |connection|
      connection.send_request("GET", "/", { "Host" => "games" })
      wait_for("the complaint", within: 30) { server.log.match?(/runs as games, has sent a pidfd of another process/) }
      assert_runs_as "daemon", facts(server, { "Host" => "daemon" })
    end
  end

  def test_the_owner_is_who_can_change_what_is_run
    folder = app_of("root", { "config.ru" => FACTS }, "app")
    link = File.join(@place, "linked")
    FileUtils.ln_s(folder, link)
    File.lchown(Etc.getpwnam("games").uid, nil, link)
    server = serve_as_root(link)
    assert_runs_as "games", facts(server)
    assert_equal "games", server_status(server)["apps"].first["user"]
  end

  def test_a_user_is_named_for_an_application
    app_of("games", { "config.ru" => FACTS }, "one")
    app_of("root", { "config.ru" => FACTS }, "two")
    File.write(File.join(@place, "highball.toml"), entries("one" => "user = 'root'", "two" => "user = 'www-data'"))
    server = serve_as_root(@place)
    assert_equal [0, 0], facts(server, { "Host" => "one" })["ids"].first(2)
    assert_runs_as "www-data", facts(server, { "Host" => "two" })
    refute_match(/runs as root/, server.log)
    File.write(File.join(@place, "highball.toml"), entries("one" => "user = 'games'", "two" => "user = 'www-data'"))
    before = pid_of(server, "two")
    server.signal("HUP")
    games = Etc.getpwnam("games").uid
    wait_for("another user", within: 30) { facts(server, { "Host" => "one" })["ids"].first == games }
    assert_equal before, pid_of(server, "two")
  end

  def test_a_warning_about_root_unless_root_is_named
    app = app_of("root", { "config.ru" => FACTS }, "app")
    server = serve_as_root(app)
    assert_equal [0, 0, 0, 0], facts(server)["ids"]
    assert_match(/WARN .*runs as root, because its files belong to root/, server.log)
    assert_match(/adduser --system --group app; chown -R app: #{app}/, server.log)
    output = highball("doctor", "-e", "production", "-p", "0", app, env: env, within: 60)
    assert_match(/^warning  runs_as_root: /, output)
  end

  def test_users_that_cannot_be_used
    app = app_of("games", "config.ru" => FACTS)
    output = refused(app, "--user", "no-such-user")
    assert_match(/option --user: there is no user `no-such-user`.*adduser/, output)
    output = refused(app, "--user", "games", user: "daemon")
    assert_match(/option --user: only root.*this is daemon.*sudo -u games/, output)
    File.write(File.join(app, "highball.toml"), "workers = 1\nuser = 'root'\n")
    FileUtils.chown("games", nil, File.join(app, "highball.toml"))
    output = refused(app)
    assert_match(/highball\.toml, line 2: `user` decides .* as #{app} belongs to games/, output)
  end

  def test_naming_the_current_user_changes_nothing
    app = app_of("daemon", "config.ru" => "raise Process.uid.to_s\n")
    output = refused(app, "--user", "daemon", user: "daemon")
    assert_match(/RuntimeError: #{Etc.getpwnam('daemon').uid}"/, output)
  end

  def test_a_file_that_the_user_may_not_write
    app = app_of("games", "log/production.log" => "", "config.ru" => <<~RUBY)
      File.open(File.join(__dir__, "log/production.log"), "a")
      #{FACTS}
    RUBY
    File.chown(0, 0, File.join(app, "log/production.log"))
    diagnosis = diagnosis_of(app)
    assert_equal "permission_denied", diagnosis["cause"]
    assert_equal "The application runs as the user games: give games access to the file that the message names.",
                 diagnosis["remedy"]
    assert_equal "ls -ld #{app}/log/production.log", diagnosis["command"]
    assert_equal Etc.getpwnam("games").dir, diagnosis["environment"]["HOME"]
  end

  def test_highball_itself_where_the_user_may_not_look
    app = app_of("games", "config.ru" => FACTS)
    File.chmod(0o700, lib)
    diagnosis = diagnosis_of(app)
    assert_equal "permission_denied", diagnosis["cause"]
    assert_includes diagnosis.dig("error", "message"),
                    "games cannot read #{lib}/highball/boot.rb: #{lib} is closed to games"
    assert_match(/Install Highball where every user can read it/, diagnosis["remedy"])
    assert_match(/\Anamei -l /, diagnosis["command"])
  end

  def test_a_folder_that_the_user_may_not_enter
    app = app_of("root", { "config.ru" => FACTS }, "app")
    File.chmod(0o700, app)
    diagnosis = diagnosis_of(app, "--user", "games")
    assert_includes diagnosis.dig("error", "message"), "games cannot read #{app}"
    assert_includes diagnosis["remedy"], "Let games into #{app}, or choose another `user`"
  end

  # Root could read all files, so paths of an application are opened as the application's user.
  def test_no_file_is_served_or_shown_that_the_application_could_not_read
    app = app_of("games", "config.ru" => "run ->(_env) { raise 'alas' }\n", "public/own.txt" => "own",
                          "shared" => "own")
    secret = File.join(@place, "secret")
    File.write(secret, SECRET, perm: 0o600)
    { secret => %w[secret.txt 500.html], File.join(app, "shared") => ["shared.txt"] }.each do |target, names|
      names.each { |name| FileUtils.ln_s(target, File.join(app, "public", name)) }
    end
    server = serve_as_root(app)
    %w[/own.txt /shared.txt].each { |path| assert_equal "own", server.get(path).body, path }
    answer = server.get("/secret.txt")
    assert_equal 500, answer.status
    refute_includes answer.body, SECRET
    broken = app_of("games", { "config.ru" => "raise SyntaxError, '#{secret}:1: alas'\n" }, "broken")
    FileUtils.mkdir(File.join(broken, "log"))
    FileUtils.ln_s(secret, File.join(broken, "log/production.log"))
    diagnosis = diagnosis_of(broken)
    assert_equal secret, diagnosis.dig("error", "file")
    refute_includes JSON.generate(diagnosis), SECRET
  end

  private

  def serve_two_users
    apps = TWO.map { |user| app_of(user, "config.ru" => FACTS) }
    serve_as_root(*apps)
  end

  def runs_as_owners(server)
    TWO.each do |user|
      facts = facts(server, { "Host" => user })
      assert_runs_as user, facts
      assert_equal File.join(@place, user), facts["folder"]
      assert_nil facts["runtime"], "variables of root's are not passed on"
    end
  end

  # The pids of each application's mold and worker.
  def processes(server)
    server_status(server)["apps"].map { |app| [app.dig("mold", "pid"), app.dig("workers", 0, "pid")] }
  end

  def pid_of(server, name) = facts(server, { "Host" => name })["pid"]

  def listening_sockets
    listening = File.readlines("/proc/net/tcp").map(&:split).select { |line| line[3] == "0A" }
    listening.map { |line| "socket:[#{line[9]}]" }
  end

  # The output when this cannot be served; started by `user` instead of root, if given.
  def refused(app, *options, user: nil)
    command = [HighballServer::BINARY, "serve", "-e", "production", "-b", "127.0.0.1", "-p", "0", *options, app]
    output, ended = user ? run_as(user, command) : HighballServer.run(*command.drop(1), env: env)
    refute_predicate ended, :success?, output
    output
  end

  # Runs a copy of the binary, which may lie where only root looks.
  def run_as(user, command)
    binary = File.join(@place, "highball")
    FileUtils.cp(command.first, binary)
    File.chmod(0o755, binary)
    through = ["setpriv", "--reuid=#{user}", "--regid=#{Etc.getpwnam(user).gid}", "--clear-groups"]
    Open3.capture2e(HighballServer::ENVIRONMENT.merge(env), *through, binary, *command.drop(1))
  end

  # The diagnosis in `highball doctor` of an application that does not boot.
  def diagnosis_of(app, *options)
    output, ended = HighballServer.run("doctor", "--json", "-e", "production", "-p", "0", *options, app,
                                       env: env, within: 60)
    refute_predicate ended, :success?, output
    JSON.parse(output[output.index("{\n")..]).fetch("diagnosis")
  end
end
