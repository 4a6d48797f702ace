# frozen_string_literal: true

# marks: root

require "socket"
require_relative "../../support/e2e_test"
require_relative "../../support/admin"

# What systemd passes to a service, and what it is notified of. The test speaks its protocols: sd_notify(3) and
# sd_listen_fds(3).
class ServiceNotificationTest < E2ETest
  include Admin

  def setup
    super
    @path = File.join(folder_with, "notify")
    @systemd = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.bind(Addrinfo.unix(@path)) }
  end

  def teardown
    super
    @systemd.close
  end

  def test_reload_and_stop
    server = serve("probe", env: { "NOTIFY_SOCKET" => @path })
    assert_equal ["READY=1", "STATUS=Serving"], next_message
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
    server.signal("HUP")
    reloading = next_message
    assert_equal "RELOADING=1", reloading[0]
    assert_operator reloading[1][/\AMONOTONIC_USEC=(\d+)\z/, 1].to_i, :>, before
    assert_equal ["READY=1", "STATUS=Serving"], next_message
    server.signal("TERM")
    assert_equal "STOPPING=1", next_message[0]
    assert_predicate server.wait, :success?
  end

  # A reload during the boot does not report that it serves.
  def test_a_reload_during_the_boot
    app = folder_with("config.ru" => "sleep 0.01 until File.exist?(File.join(__dir__, 'go'))\n" \
                                     "run ->(_env) { [200, {}, []] }\n")
    @servers << server = HighballServer.new(app, "--access-log", "access.log", env: { "NOTIFY_SOCKET" => @path })
    wait_for("the boot") { server.log.include?("booting") }
    server.signal("HUP")
    wait_for("the reload") { File.exist?(File.join(app, "access.log")) }
    refute @systemd.wait_readable(0)
    FileUtils.touch(File.join(app, "go"))
    assert_equal "READY=1", next_message[0]
  end

  def test_signs_of_life
    server = serve("probe", env: watchdog)
    await_readiness
    3.times { assert_equal ["WATCHDOG=1"], next_message }
    stop_processes(server.worker_pids)
    3.times { assert_equal ["WATCHDOG=1"], next_message }
  ensure
    server&.worker_pids&.each { |pid| HighballServer.kill(pid, "CONT") }
  end

  def test_signs_of_life_for_another_process
    serve("probe", env: watchdog.merge("WATCHDOG_PID" => "1"))
    assert_equal "READY=1", next_message[0]
    refute @systemd.wait_readable(1)
  end

  # The kernel keeps some messages (net.unix.max_dgram_qlen); the next ones would wait.
  def test_a_service_manager_that_does_not_read_holds_up_nothing
    server = serve("probe", env: watchdog.merge("WATCHDOG_USEC" => "20000"))
    full = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.connect(Addrinfo.unix(@path)) }
    wait_for("no more room") { full.sendmsg_nonblock("X=1", exception: false) == :wait_writable }
    3.times { assert_equal 200, server.get("/").status }
    server.signal("HUP")
    wait_for("the notice") { server.log.include?("cannot notify systemd") }
    assert_equal 200, server.get("/").status
    server.stop
  ensure
    full&.close
  end

  # As a thread that computes, or waits for something, would be.
  def test_a_stuck_event_loop_gives_no_sign_of_life
    needs("strace")
    server = serve("probe", *admin, env: watchdog)
    front = Dir["/proc/#{server.server_pid}/task/*"].find { |task| File.read("#{task}/comm") == "front\n" }
    stop = %w[-qq -o /dev/null -e trace=epoll_wait,epoll_pwait -e inject=epoll_wait,epoll_pwait:delay_enter=8s]
    strace = Process.spawn("strace", *stop, "-p", File.basename(front), %i[out err] => File::NULL)
    wait_for("the warning") { server.log.include?("systemd gets no notification") }
    drain
    answer = ask_admin("/livez")
    assert_equal [503, "not live: the event loop of the server does not answer\n"], [answer.status, answer.body]
    refute @systemd.wait_readable(1)
  ensure
    end_strace(strace) if strace
  end

  # As a socket unit does: the server listens on the sockets that it gets, and leaves their paths to systemd.
  def test_socket_activation
    path = File.join(folder_with, "app.sock")
    tcp = TCPServer.new("127.0.0.1", 0)
    unix = UNIXServer.new(path)
    other = UNIXServer.new("#{path}.other")
    address = "127.0.0.1:#{tcp.local_address.ip_port}"
    # systemd passes them from 3 on, with the process id that the program will have.
    script = 'LISTEN_PID=$$ LISTEN_FDS=3 exec "$@"'
    command = ["sh", "-c", script, "sh", HighballServer::BINARY, "serve", "-e", "production", "-w", "1",
               "-b", address, "-b", "unix:#{path}"]
    server = serve("probe", command: command, fds: { 3 => tcp, 4 => unix, 5 => other })
    assert_equal 200, server.get("/").status
    assert_equal(200, HttpConnection.unix(path).use { |connection| connection.get("/").status })
    assert_includes server.log, "a socket for unix:#{path}.other, which is not used"
    assert_equal [[], []], passed_on(server), "descriptors and variables of workers"
    server.stop
    assert_path_exists path
    # Clients of the time between two services wait in the backlog.
    HttpConnection.unix(path).close
  ensure
    [tcp, unix, other].compact.each(&:close)
  end

  private

  def watchdog = { "NOTIFY_SOCKET" => @path, "WATCHDOG_USEC" => "900000" }

  # The variables of the next notification.
  def next_message
    assert @systemd.wait_readable(10), "systemd received no notification"
    @systemd.recv(200).split("\n")
  end

  # Reads up to the report that the server serves.
  def await_readiness
    nil until next_message[0] == "READY=1"
  end

  def drain
    @systemd.recv(200) while @systemd.wait_readable(0)
  end

  def end_strace(pid)
    HighballServer.kill(pid, "KILL")
    Process.wait(pid)
  end

  # What workers have of the sockets: descriptors that listen, and variables.
  def passed_on(server)
    pid = server.worker_pids.fetch(0)
    sockets = Dir["/proc/#{pid}/fd/*"].filter_map { |fd| File.readlink(fd)[/\Asocket:\[(\d+)\]/, 1] }
    listening = File.readlines("/proc/net/tcp").select { |line| line.split[3] == "0A" }.map { |line| line.split[9] }
    [sockets & listening, File.read("/proc/#{pid}/environ").split("\0").grep(/\ALISTEN_/)]
  end
end
