# frozen_string_literal: true

require "socket"
require_relative "../../support/tenants_test_case"

# Root creates and removes Unix sockets and PID files: a tenant cannot make it touch other files.
class TenantPathsTest < TenantsTestCase
  # --- Unix sockets

  def test_root_makes_no_socket_in_a_folder_of_a_tenants
    folder = folder_of(ATTACKER, "run")
    output = refused("-b", "unix:#{folder}/x")
    assert_match(/#{folder} belongs to #{ATTACKER}.*RuntimeDirectory.*chown/m, output)
    assert_empty Dir.children(folder)
  end

  def test_root_makes_no_socket_where_a_tenants_link_leads
    inner = folder_of_root("inner")
    links = [File.join(folder_of(ATTACKER, "theirs"), "run"), File.join(folder_of_root("sticky", 0o1777), "run")]
    links.each do |link|
      as_attacker { File.symlink(inner, link) }
      assert_match(/belongs to #{ATTACKER}/, refused("-b", "unix:#{link}/x"))
    end
    assert_empty Dir.children(inner)
  end

  def test_root_makes_no_socket_where_others_may_write
    [0o777, 0o775, 0o757].each do |mode|
      folder = folder_of_root("open-#{mode}", mode)
      output = refused("-b", "unix:#{folder}/x")
      assert_includes output, "#{folder} may be written by other users (mode #{format('%04o', mode)})"
      assert_empty Dir.children(folder)
    end
  end

  def test_a_tenant_who_swaps_folders_gets_no_socket_of_roots_anywhere
    mine = folder_of(ATTACKER, "theirs")
    inner = folder_of_root("inner")
    swapping = start_as_attacker do
      Dir.mkdir("#{mine}/real")
      File.symlink(inner, "#{mine}/link")
      loop do
        %w[real link].each do |name|
          File.rename("#{mine}/#{name}", "#{mine}/run")
          File.rename("#{mine}/run", "#{mine}/#{name}")
        end
      end
    end
    20.times { refused("-b", "unix:#{mine}/run/x", "--pidfile", "#{mine}/run/x.pid") }
    assert_empty Dir.children(inner)
    assert_empty Dir.glob("#{mine}/*/*")
  ensure
    end_process(swapping)
  end

  def test_a_tenants_stale_socket_in_a_sticky_folder_is_not_roots_to_replace
    path = File.join(folder_of_root("sticky", 0o1777), "x")
    as_attacker { UNIXServer.new(path).close }
    assert_match(/socket of #{ATTACKER}'s/, refused("-b", "unix:#{path}"))
    assert_equal uid(ATTACKER), File.lstat(path).uid
  end

  def test_a_tenants_socket_that_listens_in_a_sticky_folder_is_refused
    path = File.join(folder_of_root("sticky", 0o1777), "x")
    listening = start_as_attacker { UNIXServer.new(path).accept }
    wait_for("the socket") { File.socket?(path) }
    assert_match(/socket of #{ATTACKER}'s/, refused("-b", "unix:#{path}"))
    assert ProcessFacts.alive?(listening), "no process has connected to it"
  ensure
    end_process(listening)
  end

  def test_what_is_no_socket_stays_as_it_is
    folder = folder_of_root("sticky", 0o1777)
    root_file = @root_file
    as_attacker do
      File.symlink(root_file, "#{folder}/link")
      File.symlink("#{folder}/nowhere", "#{folder}/dangling")
      File.mkfifo("#{folder}/fifo")
      File.write("#{folder}/file", "theirs")
    end
    File.link(@root_file, "#{folder}/hard-link") # as with fs.protected_hardlinks=0
    before = Dir.children(folder).sort
    before.each do |name|
      assert_match(/not a socket/, refused("-b", "unix:#{folder}/#{name}"), name)
    end
    assert_equal before, Dir.children(folder).sort
    assert_root_file_untouched
  end

  def test_a_tenants_lock_file_is_reported
    folder = folder_of_root("sticky", 0o1777)
    as_attacker { File.mkfifo("#{folder}/.x.lock") }
    assert_match(/cannot listen on unix:.*(lock file|denied)/, refused("-b", "unix:#{folder}/x"))
    as_attacker { File.rename("#{folder}/.x.lock", "#{folder}/.x.pid.lock") }
    assert_match(/cannot write the PID file/, refused("--pidfile", "#{folder}/x.pid"))
    assert_equal [".x.pid.lock"], Dir.children(folder)
  end

  def test_a_stale_socket_of_roots_is_replaced_and_goes_at_the_end
    folder = folder_of_root("run")
    UNIXServer.new("#{folder}/x").close
    server = serve_at("#{folder}/x")
    assert_equal ["x"], Dir.children(folder)
    assert_equal uid(VICTIM), facts(server)["ids"].first
    server.stop
    assert_empty Dir.children(folder)
  end

  def test_at_the_end_only_that_very_socket_is_removed
    folder = folder_of_root("run")
    server = serve_at("#{folder}/x")
    File.rename(folder, "#{folder}-moved")
    Dir.mkdir(folder)
    File.write("#{folder}/x", "another's")
    server.stop
    assert_equal "another's", File.read("#{folder}/x")
    assert_empty Dir.children("#{folder}-moved")
  end

  def test_a_socket_that_has_replaced_ours_stays
    folder = folder_of_root("run")
    server = serve_at("#{folder}/x")
    File.unlink("#{folder}/x")
    UNIXServer.open("#{folder}/x") do
      server.stop
      assert File.socket?("#{folder}/x")
    end
  end

  def test_of_two_that_start_at_once_one_has_the_socket
    folder = folder_of_root("run")
    UNIXServer.new("#{folder}/x").close
    apps = %w[one two three].map { |name| app_of(VICTIM, { "config.ru" => FACTS }, name) }
    starting = apps.map { |app| start_at("#{folder}/x", app) }
    wait_for("all but one to give up", within: 60) { starting.one?(&:running?) }
    server = starting.find(&:running?)
    server.wait_until_serving
    assert_equal server.app, facts(server)["folder"]
    (starting - [server]).each { |other| assert_match(/another program is using it already/, other.log) }
    assert_equal ["x"], Dir.children(folder)
  end

  # --- PID files

  def test_root_writes_no_pid_file_where_others_may_write
    [folder_of(ATTACKER, "theirs"), folder_of_root("open", 0o777)].each do |folder|
      root_file = @root_file
      # The temporary names that the next processes would use.
      guesses = (Process.pid..(Process.pid + 200)).map { |pid| "#{folder}/x.#{pid}.new" }
      as_attacker { guesses.each { |guess| File.symlink(root_file, guess) } }
      output = refused("--pidfile", "#{folder}/x.pid")
      assert_match(/cannot write the PID file.*#{folder} (belongs to|may be written by)/, output)
      assert_root_file_untouched
      refute_path_exists "#{folder}/x.pid"
    end
  end

  def test_what_is_no_pid_file_is_not_overwritten_and_not_waited_for
    folder = folder_of_root("sticky", 0o1777)
    root_file = @root_file
    as_attacker do
      File.symlink(root_file, "#{folder}/link")
      File.symlink("/dev/zero", "#{folder}/endless")
      File.mkfifo("#{folder}/fifo")
      Dir.mkdir("#{folder}/folder")
      UNIXServer.new("#{folder}/socket").close
    end
    File.link(@root_file, "#{folder}/hard-link")
    File.write("#{folder}/notes", "not a number")
    before = Dir.children(folder).sort
    before.each { |name| assert_match(/PID file .*is there already/, refused("--pidfile", "#{folder}/#{name}"), name) }
    assert_equal before, Dir.children(folder).sort
    assert_root_file_untouched
    assert_equal "not a number", File.read("#{folder}/notes")
  end

  def test_a_tenants_pid_file_in_a_sticky_folder_is_reported
    path = File.join(folder_of_root("sticky", 0o1777), "x.pid")
    server = serve_at(File.join(folder_of_root("run"), "x"))
    as_attacker { File.write(path, "#{server.pid}\n") }
    assert_match(/a file of #{ATTACKER}'s is there already/, refused("--pidfile", path))
    assert_equal "#{server.pid}\n", File.read(path)
  end

  def test_of_several_that_start_at_once_one_has_the_pid_file
    pidfile = File.join(folder_of_root("run"), "x.pid")
    File.write(pidfile, "999999999\n")
    apps = %w[one two three].map { |name| app_of(VICTIM, { "config.ru" => FACTS }, name) }
    starting = apps.map { |app| start_many(app, env: own_control, through: pidfile_through(pidfile)) }
    wait_for("all but one to give up", within: 60) { starting.one?(&:running?) }
    server = starting.find(&:running?)
    assert_equal "#{server.pid}\n", File.read(pidfile)
    taken = /belongs to a Highball that runs \(pid #{server.pid}\)/
    (starting - [server]).each { |other| assert_match(taken, other.log) }
    server.wait_until_serving
    server.stop
    assert_empty Dir.children(File.dirname(pidfile))
  end

  def test_a_pid_file_that_has_replaced_ours_stays
    pidfile = File.join(folder_of_root("run"), "x.pid")
    server = start_many(victim_app, env: own_control, through: pidfile_through(pidfile))
    server.wait_until_serving
    File.write("#{pidfile}.other", File.read(pidfile))
    File.rename("#{pidfile}.other", pidfile)
    server.stop
    assert_equal "#{server.pid}\n", File.read(pidfile)
  end

  private

  def uid(user) = Etc.getpwnam(user).uid

  def folder_of_root(name, mode = 0o755)
    File.join(@place, name).tap do |folder|
      Dir.mkdir(folder) unless File.directory?(folder)
      File.chmod(mode, folder)
    end
  end

  def folder_of(user, name)
    folder_of_root(name).tap { |folder| FileUtils.chown(user, nil, folder) }
  end

  # The output when root starts a server with these options, which fails.
  def refused(*options)
    app = Dir.exist?(File.join(@place, "victim")) ? File.join(@place, "victim") : victim_app
    address = options.include?("-b") ? [] : ["-b", "127.0.0.1"]
    highball_fails("serve", *address, "-p", "0", "-e", "production", *options, app, env: env)
  end

  def serve_at(socket) = start_at(socket, victim_app).tap(&:wait_until_serving)

  def start_at(socket, app)
    HighballServer.new(app, bind: socket, env: env.merge(own_control)).tap { |server| @servers << server }
  end

  # A place for control sockets that other tests do not use.
  def own_control = env.merge("HIGHBALL_CONTROL" => folder_of_root("control"))

  # The PID file comes as a variable, beside the options that every server of a test has.
  def pidfile_through(path) = ["env", "PIDFILE=#{path}"]

  # Runs the block in a process of the attacker's, which goes on: its pid.
  def start_as_attacker
    user = Etc.getpwnam(ATTACKER)
    fork do
      Process.initgroups(ATTACKER, user.gid)
      Process::GID.change_privilege(user.gid)
      Process::UID.change_privilege(user.uid)
      yield
    ensure
      exit!(1)
    end
  end

  def end_process(pid)
    return unless pid

    HighballServer.kill(pid)
    Process.wait(pid)
  end
end
