# frozen_string_literal: true

# marks: long, root

require_relative "../../support/upgrade_test_case"

# Hot restarts: a new `highball` takes over the listening sockets, and clients do not notice.
class UpgradeTest < UpgradeTestCase
  def test_three_under_load
    three_under_load(serve(version(1), "--drain-timeout", "2s", workers: 2))
  end

  def test_three_under_load_on_a_unix_socket
    path = File.join(folder_with, "app.sock")
    three_under_load(serve(version(1), "--drain-timeout", "2s", workers: 2, bind: path))
    assert File.socket?(path)
  end

  def test_many_new_connections_at_once
    server = serve(version(1), "--drain-timeout", "1s")
    stopping = false
    clients = Array.new(8) { Thread.new { assert_equal 200, server.get("/").status until stopping } }
    clients.each { |thread| thread.report_on_exception = false }
    pid = upgrade(server)
    stopping = true
    clients.each(&:join) # raises what one of them has met: a refusal, or a reset
    serves_by(server, pid)
  end

  def test_options_are_read_again
    app = version(1)
    File.write(File.join(app, "highball.toml"), "threads = 2\n")
    command = [HighballServer::BINARY, "-b", "127.0.0.1", "-p", "0", "-w", "1", "-e", "production"]
    server = serve(app, command: command)
    File.write(File.join(app, "highball.toml"), "threads = 4\nmax_body = \"1k\"\n")
    upgrade(server)
    assert_equal([4], server.status["workers"].map { |worker| worker["threads"] })
    assert_equal 413, server.request("POST", "/", {}, "x" * 2000).status
  end

  def test_addresses_come_and_go
    app = version(1)
    first, second = %w[first second].map { |name| File.join(folder_with, "#{name}.sock") }
    config = File.join(app, "highball.toml")
    File.write(config, "bind = [\"unix:#{first}\"]\n")
    server = serve(app, "--drain-timeout", "1s", command: [HighballServer::BINARY, "-e", "production", "-w", "1"],
                                                 bind: first)
    File.write(config, "bind = [\"unix:#{first}\", \"unix:#{second}\"]\n")
    upgrade(server)
    assert_equal("1 ", HttpConnection.unix(second).get("/").body)
    File.write(config, "bind = [\"unix:#{second}\"]\n")
    upgrade(server)
    wait_for("the end of the first address") { !File.exist?(first) }
    assert_equal("1 ", HttpConnection.unix(second).get("/").body)
  end

  # --- connections

  def test_an_idle_connection_has_one_more_answer
    %w[1.1 1.0].each do |http|
      app = version(1)
      server = serve(app, "--drain-timeout", "30s")
      keep = { "Connection" => "keep-alive" }
      server.connect do |connection|
        assert_equal "1 ", connection.get("/", keep, version: http).body
        version(2, app)
        upgrade(server)
        assert_equal "2", answer(server)
        last = connection.get("/", keep, version: http)
        assert_equal ["1 ", "close"], [last.body, last["connection"]]
        assert_predicate connection, :ended?
      end
    end
  end

  # A process ends at once when it is succeeded and has no clients: to the one before, that is no sign that none serves.
  def test_an_idle_connection_has_one_more_answer_after_two_more_hot_restarts
    server = serve(version(1), "--drain-timeout", "30s")
    upgrade(server)
    server.connect do |connection|
      connection.get("/")
      middle = upgrade(server)
      upgrade(server)
      wait_for("the process in the middle to end") { gone?(middle) }
      assert_raises(HttpConnection::TimedOut) { connection.ended?(within: 3) }
      assert_equal 200, connection.request("POST", "/", {}, "x").status
    end
    refute_match(/the process that took over has ended/, server.log)
  end

  # The idle connections of those before do not hold up the end of the last.
  def test_stop_ends_those_that_were_succeeded
    server = serve(version(1), "--drain-timeout", "60s")
    upgrade(server)
    server.connect do |connection|
      connection.get("/")
      middle = upgrade(server)
      upgrade(server)
      wait_for("the process in the middle to end") { gone?(middle) }
      assert_predicate server.stop(within: 20), :success?
      assert_predicate connection, :ended?
    end
  end

  def test_an_idle_connection_without_a_request_ends_cleanly
    server = serve(version(1), "--drain-timeout", "1s")
    old = server.worker_pids
    server.connect do |connection|
      connection.get("/")
      upgrade(server)
      assert_predicate connection, :ended?
    end
    wait_for("the end of the old workers") { old.all? { |pid| gone?(pid) } }
    refute_match(/have not finished/, server.log)
  end

  def test_a_request_in_flight_is_answered
    with_a_request_in_flight do |server, app, connection|
      version(2, app)
      upgrade(server)
      assert_equal "2", answer(server)
      let_go(app)
      assert_equal "1 ", connection.read_response.body
    end
  end

  def test_a_hijacked_connection_has_a_separate_time_limit
    server = serve("probe", "--hijacked-drain-timeout", "1s", "--drain-timeout", "30s")
    old = server.worker_pids
    server.connect do |connection|
      connection.write("GET /hijack HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
      assert_equal 101, connection.read_response.status
      upgrade(server)
      connection.write("still here\n")
      assert_equal "echo still here\n", connection.read_bytes(16)
      assert_predicate connection, :ended?
    end
    wait_for("the end of the old workers") { old.all? { |pid| gone?(pid) } }
  end

  # --- how processes find each other

  def test_status_pidfile_and_the_processes_that_are_left
    pidfile = File.join(folder_with, "app.pid")
    server = serve(version(1), "--drain-timeout", "1s", "--pidfile", pidfile)
    server.connect do |connection|
      connection.get("/") # keeps the old process from ending
      pid = upgrade(server)
      assert_equal pid, File.read(pidfile).to_i
      assert_equal [pid, server.pid], server.status.values_at("pid", "predecessor")
      text, = HighballServer.run("status", *server.which)
      assert_match(/pid #{server.pid}\), draining.*succeeded +pid #{pid} serves/m, text)
      assert_match(/hot restart +by highball upgrade: done/, text)
    end
    third = upgrade(server)
    # The first process, and no other, is the PID proxy for the serving one.
    wait_for("the end of the second") { highballs(server).sort == [server.pid, third].sort }
    restart(server)
    assert_predicate server.stop, :success?
    refute File.exist?(pidfile)
  end

  def test_the_first_process_passes_signals_on_and_ends_as_the_last
    server = serve(version(1), "--drain-timeout", "1s")
    2.times { upgrade(server) }
    third = upgrade(server)
    wait_for("the end of the others") { highballs(server).sort == [server.pid, third].sort }
    server.signal("TTIN")
    wait_for("one worker more") { workers(server) == %w[serving serving] }
    server.signal("USR2")
    wait_for("a fourth process") { server.status["pid"] != third }
    fourth = server.status["pid"]
    wait_for("the end of the third") { gone?(third) }
    HighballServer.kill(fourth)
    assert_equal 128 + 9, server.wait.exitstatus
    assert_empty server.orphans
  end

  def test_in_development_ctrl_c_ends_the_new_process_too
    server = serve(version(1), environment: "development")
    pid = upgrade(server)
    serves_by(server, pid)
    Process.kill("INT", -server.pid) # as a terminal does: to the whole group
    server.wait(within: 10)
    assert_empty server.orphans
  end

  # systemd would kill a main process that it has not started as soon as the service stops.
  def test_the_main_process_of_a_service_stays
    path = File.join(folder_with, "notify")
    systemd = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.bind(Addrinfo.unix(path)) }
    server = serve(version(1), "--drain-timeout", "1s", env: { "NOTIFY_SOCKET" => path })
    assert_includes systemd.recv(1000).lines(chomp: true), "READY=1"
    pid = upgrade(server)
    serves_by(server, pid)
    server.signal("TERM")
    assert_predicate server.wait, :success?
    messages = []
    while (message = systemd.recv_nonblock(1000, exception: false)) != :wait_readable
      messages << message
    end
    refute_match(/MAINPID|READY/, messages.join("\n"))
  end

  # --- what is inherited

  def test_nothing_but_the_sockets_is_inherited
    server = serve(version(1), "--drain-timeout", "1s")
    open_files = ->(pids) { pids.map { |pid| ProcessFacts.open_file_count(pid) } }
    fresh = open_files.call([server.pid, server.server_pid])
    pid = upgrade(server)
    wait_for("the end of the handing over") do
      open_files.call([pid, server.server_pid(pid)]).zip(fresh).all? { |now, before| now <= before + 2 }
    end
    assert_equal [server.server_pid(pid)], ProcessFacts.listeners(server.port)
    environment = File.binread("/proc/#{server.mold_pid}/environ")
    refute_match(/PREDECESSOR/, environment)
  end

  def test_an_app_object_cannot_be_upgraded
    server = serve_an_object
    assert_match(/given as an object/, upgrade_fails(server))
    assert_equal "0", answer(server)
  end

  private

  def three_under_load(server)
    app = server.app
    first = server.pid
    load = KeepAliveLoad.during(server, allowed: [:closed]) do |clients|
      (2..4).each do |number|
        version(number, app)
        clients.more(3)
        serves_by(server, upgrade(server))
        clients.more(3)
      end
    end
    assert_empty load.failures
    load.versions_met.each { |met| assert_equal met.uniq.sort, met }
    assert_equal [4], load.versions_met.map(&:last).uniq
    assert_equal first, server.pid
  end
end
