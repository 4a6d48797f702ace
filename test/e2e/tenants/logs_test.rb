# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Access logs in places where other users may write: the server writes no other files, and never waits.
class TenantLogsTest < TenantsTestCase
  LINE = %r{\A127\.0\.0\.1 - - \[.*\] "GET (\S+) HTTP/1\.1" 200 \d+ }
  REFUSED = /ERROR attacker: .*|ERROR the access log cannot be opened; requests are not logged/

  def test_a_log_in_an_applications_folder_belongs_to_its_user
    server = serve_with_log
    ask_attacker(server, "/one")
    wait_for("the line") { lines(log_of_attacker).length == 1 }
    stat = File.stat(log_of_attacker)
    games = Etc.getpwnam(ATTACKER)
    assert_equal [games.uid, games.gid], [stat.uid, stat.gid]
    assert_nil problem(server)
  end

  def test_a_link_to_a_file_of_roots_is_not_followed
    assert_refused(/is a symbolic link/) { File.symlink(@root_file, log_of_attacker) }
    assert_root_file_untouched
  end

  def test_a_link_that_leads_nowhere_creates_nothing
    nowhere = File.join(@place, "created-by-root")
    assert_refused(/is a symbolic link/) { File.symlink(nowhere, log_of_attacker) }
    refute_path_exists nowhere
  end

  def test_a_link_to_a_file_of_its_own_is_refused_too
    assert_refused(/is a symbolic link/) do
      File.write("#{log_of_attacker}.1", "")
      File.symlink("#{log_of_attacker}.1", log_of_attacker)
    end
  end

  def test_the_folder_may_be_a_link_but_leads_no_further_than_the_user_may_write
    closed = File.join(@place, "of-root-folder").tap { |folder| Dir.mkdir(folder, 0o755) }
    assert_refused(/may not open it/) do
      Dir.rmdir(File.dirname(log_of_attacker))
      File.symlink(closed, File.dirname(log_of_attacker))
    end
    assert_empty Dir.children(closed)
  end

  def test_a_folder_of_another_user_is_out_of_reach
    victims = File.join(@place, "victim/log").tap { |folder| FileUtils.mkdir_p(folder) }
    File.write(File.join(victims, "access.log"), "of the victim\n", perm: 0o644)
    FileUtils.chown_R(VICTIM, nil, File.join(@place, "victim"))
    assert_refused(/may not open it|does not exist/) do
      Dir.rmdir(File.dirname(log_of_attacker))
      File.symlink(victims, File.dirname(log_of_attacker))
    end
    assert_equal "of the victim\n", File.read(File.join(victims, "access.log"))
  end

  def test_a_named_pipe_holds_nothing_up
    assert_refused(/is a named pipe/) { File.mkfifo(log_of_attacker) }
  end

  def test_a_named_pipe_that_is_read_is_no_log_either
    reader = nil
    assert_refused(/is a named pipe/) do
      File.mkfifo(log_of_attacker)
      reader = spawn("cat", log_of_attacker, out: File::NULL)
    end
  ensure
    Process.kill("KILL", reader) && Process.wait(reader) if reader
  end

  def test_a_socket_is_no_log
    assert_refused(/is a (socket|named pipe)/) { UNIXServer.new(log_of_attacker) }
  end

  def test_a_link_to_a_device_is_no_log
    assert_refused(/is a symbolic link/) { File.symlink("/dev/full", log_of_attacker) }
  end

  def test_a_link_into_proc_is_no_log
    assert_refused(/may not open it|symbolic links lead|the kernel makes up|does not exist/) do
      Dir.rmdir(File.dirname(log_of_attacker))
      File.symlink("/proc/self/fd", File.dirname(log_of_attacker))
    end
  end

  def test_a_folder_is_no_log
    assert_refused(/is a (folder|directory)/) { Dir.mkdir(log_of_attacker) }
  end

  # It was a regular file at the start.
  def test_what_is_put_in_its_place_is_not_opened_at_hup
    server = serve_with_log
    ask_attacker(server, "/before")
    wait_for("the line") { lines(log_of_attacker).length == 1 }
    hang_up_with_another_log(server, "fifo") { |path| File.mkfifo(path) }
    hang_up_with_another_log(server, "link") { |path| File.symlink(@root_file, path) }
    assert_match(/cannot reopen .*: it is a symbolic link/, problem(server))
    wait_for("the lines, in the file from before") { lines(log_of_attacker) == %w[/before /after-fifo /after-link] }
    server.signal("HUP")
    wait_for("the log, which is a file again") { problem(server).nil? }
    assert_root_file_untouched
  end

  # Swapped as fast as it can be, while the server opens it again and again.
  def test_a_log_that_is_swapped_all_the_time_never_leads_to_roots_file
    server = serve_with_log
    swapper = fork { swap_for_ever }
    20.times do
      server.signal("HUP")
      ask_attacker(server, "/swapped")
    end
    assert_root_file_untouched
    assert_victim_serves(server)
  ensure
    Process.kill("KILL", swapper) && Process.wait(swapper) if swapper
  end

  # A process with a lease on a file makes other processes that open it wait for up to 45 seconds.
  def test_a_lease_holds_nothing_up
    server = serve_with_log
    ask_attacker(server, "/before")
    wait_for("the line") { lines(log_of_attacker).length == 1 }
    holder = fork { hold_lease }
    wait_for("the lease") { File.exist?("#{log_of_attacker}.leased") }
    server.signal("HUP")
    3.times { assert_victim_serves(server) }
    assert_equal 200, ask_attacker(server, "/after").status
    wait_for("the complaint") { server.log.match?(/cannot reopen the access log.*holds a lease/m) }
  ensure
    Process.kill("KILL", holder) && Process.wait(holder) if holder
  end

  # Root's own log must be in a place where other users cannot replace it.
  def test_the_log_of_the_server_lies_where_only_root_may_write
    { File.join(@place, "attacker/log/server.log") => /attacker belongs to #{ATTACKER}/,
      File.join(@place, "open/server.log") => /open can be written to by everybody/ }.each do |path, why|
      FileUtils.mkdir_p(File.join(@place, "open"), mode: 0o777)
      File.chmod(0o777, File.join(@place, "open"))
      server = serve_tenants(top: "access_log = '#{path}'")
      wait_for("the complaint") { server.log.match?(/the access log cannot be opened; requests are not logged/) }
      assert_match(/#{why.source}, and Highball runs as root.*Choose a folder that belongs to root/, server.log)
      assert_match(why, server.full_status["log_problem"])
      assert_victim_serves(server)
      refute_path_exists path
      server.stop
    end
  end

  def test_the_log_of_the_server_in_a_folder_of_roots
    logs = File.join(@place, "logs").tap { |folder| Dir.mkdir(folder, 0o755) }
    File.symlink("real.log", File.join(logs, "access.log")) # root's own
    server = serve_tenants(top: "access_log = 'logs/access.log'")
    ask_attacker(server, "/one")
    wait_for("the line") { lines(File.join(logs, "real.log")) == ["/one"] }
    assert_equal 0, File.stat(File.join(logs, "real.log")).uid
  end

  # Of a server with one application it is that application's.
  def test_the_log_of_a_server_with_one_application
    attacker = attacker_app
    as_attacker { Dir.mkdir(File.join(attacker, "log")) && File.symlink(@root_file, log_of_attacker) }
    server = serve_as_root(attacker, "--access-log", log_of_attacker)
    wait_for("the refusal") { server.log.match?(/cannot be opened; .*is a symbolic link/m) }
    assert_equal 200, ask_attacker(server).status
    assert_root_file_untouched
  end

  def test_standard_output_and_error_are_logs_as_before
    %w[- /dev/stdout /dev/stderr].each do |path|
      server = serve_tenants(entries: { ATTACKER => "access_log = '#{path}'" })
      ask_attacker(server, "/to-the-stream")
      wait_for("the line in #{path}") { server.log.include?('"GET /to-the-stream HTTP/1.1" 200') }
      server.stop
    end
  end

  # A stream that takes nothing: the front goes on, and counts the lost lines.
  def test_a_log_that_takes_nothing_holds_nothing_up
    reader, writer = IO.pipe
    through = ["sh", "-c", 'exec "$@" >&7 7>&-', "sh"]
    configure_tenants(attacker_app, victim_app, entries: { ATTACKER => "access_log = '-'" })
    server = start_many(@place, env: root_env, through: through, fds: { 7 => writer })
    writer.close
    wait_for("the server", within: 60) { server.log.include?("serving on") }
    agent = { "User-Agent" => "a" * 8000 }
    server.connect do |connection|
      1200.times { connection.request("GET", "/", { "Host" => HOSTS[ATTACKER] }.merge(agent)) }
    end
    assert_victim_serves(server)
    wait_for("the count", within: 30) { server.log.match?(/the access log was too slow, or full: .*lines=\d+/) }
  ensure
    Thread.new { reader.read } # so that it can end
  end

  # Visitors cannot forge lines.
  def test_a_visitor_cannot_forge_a_line
    server = serve_with_log
    ask_attacker(server, "/%0a", { "User-Agent" => "x\" 200 1 \"\u009b2J\\" })
    wait_for("the line") { !File.empty?(log_of_attacker) }
    assert_includes File.read(log_of_attacker), '"x\" 200 1 \"\xc2\x9b2J\\\\"'
    assert_equal 1, File.readlines(log_of_attacker).length
  end

  private

  def log_of_attacker = File.join(@place, "attacker/log/access.log")

  def lines(path)
    File.exist?(path) ? File.readlines(path).filter_map { |line| line[LINE, 1] } : []
  end

  def problem(server) = server.full_status["apps"].find { |app| app["name"] == "attacker" }["log_problem"]

  # Both applications; the attacker's has a separate log.
  def serve_with_log
    attacker = attacker_app
    as_attacker { Dir.mkdir(File.join(attacker, "log")) }
    yield if block_given?
    serve_tenants(attacker, victim_app, entries: { ATTACKER => "access_log = 'log/access.log'" })
  end

  # The block puts something in the log's place, as the attacker. The server does not open it, and reports that; both
  # applications serve.
  def assert_refused(why, &put)
    server = serve_with_log { put_as_attacker(&put) }
    wait_for("the refusal") { server.log.include?("the access log cannot be opened; requests are not logged") }
    assert_match(/access\.log cannot be opened: .*(#{why.source})/, problem(server))
    assert_equal 200, ask_attacker(server, "/#{SECRET.tr(' ', '-')}").status
    server.signal("HUP")
    wait_for("another try") { server.log.scan("the access log cannot be opened; requests are not logged").length == 2 }
    assert_victim_serves(server)
    output, = HighballServer.run("status", *server.which, env: root_env)
    assert_match(/^ *access log .*cannot be opened/, output)
  end

  # The attacker puts something else in the log's place while the server reopens it.
  def hang_up_with_another_log(server, kind)
    as_attacker { File.rename(log_of_attacker, "#{log_of_attacker}.was") && yield(log_of_attacker) }
    count = server.log.scan("cannot reopen the access log").length
    server.signal("HUP")
    wait_for("the complaint about a #{kind}") { server.log.scan("cannot reopen the access log").length > count }
    ask_attacker(server, "/after-#{kind}")
    assert_victim_serves(server)
    as_attacker { File.unlink(log_of_attacker) && File.rename("#{log_of_attacker}.was", log_of_attacker) }
  end

  # Runs in this process, so that opened files stay open, with the attacker as the effective user.
  def put_as_attacker
    attacker = Etc.getpwnam(ATTACKER)
    Process::Sys.setegid(attacker.gid)
    Process::Sys.seteuid(attacker.uid)
    yield
  ensure
    Process::Sys.seteuid(0)
    Process::Sys.setegid(0)
  end

  def swap_for_ever
    log = log_of_attacker
    Process::GID.change_privilege(Etc.getpwnam(ATTACKER).gid)
    Process::UID.change_privilege(Etc.getpwnam(ATTACKER).uid)
    loop do
      File.symlink(@root_file, "#{log}.link") unless File.symlink?("#{log}.link")
      File.write("#{log}.file", "") unless File.exist?("#{log}.file")
      File.rename("#{log}.link", log)
      File.rename("#{log}.file", log)
    rescue SystemCallError
      next
    end
  end

  def hold_lease
    Process::GID.change_privilege(Etc.getpwnam(ATTACKER).gid)
    Process::UID.change_privilege(Etc.getpwnam(ATTACKER).uid)
    trap("IO") { nil } # the kernel asks for it back
    other = "#{log_of_attacker}.new"
    file = File.open(other, "w+")
    file.fcntl(1024, 1) # F_SETLEASE, F_WRLCK
    File.rename(other, log_of_attacker)
    File.write("#{log_of_attacker}.leased", "")
    sleep
  end
end
