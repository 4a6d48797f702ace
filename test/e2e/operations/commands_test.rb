# frozen_string_literal: true

require_relative "../../support/e2e_test"

# The command line, as its users type it.
class CommandsTest < E2ETest
  def test_status_names_every_process
    server = serve("probe", workers: 2, threads: 4)
    wait_for("both workers") { server.settled? }
    status = server.status
    workers = status.fetch("workers")
    assert_equal 2, workers.length
    workers.each { |worker| assert_equal ["serving", 4], worker.values_at("state", "threads") }
    below = ProcessFacts.tree(server.pid)
    [status.dig("mold", "pid"), *server.worker_pids].each { |pid| assert_includes below, pid }
    plain = highball("status", *server.which)
    server.worker_pids.each { |pid| assert_includes plain, pid.to_s }
  end

  def test_stop_drains_and_waits
    server = serve("probe")
    highball("stop", *server.which)
    assert_predicate server.wait(within: 5), :success?
  end

  def test_instances_are_distinguished
    one = serve("probe")
    other = serve("probe")
    refute_equal one.mold_pid, other.mold_pid
    HighballServer.run("stop", *one.which)
    one.wait
    assert_equal 200, other.get("/").status
  end

  def test_without_an_instance_they_say_so
    %w[status stop].each do |command|
      output, ended = HighballServer.run(command, "--port", "1")
      refute_predicate ended, :success?, command
      assert_match(/1/, output)
      refute_empty output
    end
  end

  def test_the_control_socket_is_for_its_owner_alone
    server = serve("probe")
    server.status
    sockets = Dir.glob(File.join(HighballServer::CONTROL, "*.sock"))
    assert_equal ["#{server.pid}.sock"], (sockets.map { |path| File.basename(path) })
    sockets.each { |path| assert_equal 0o600, File.stat(path).mode & 0o777, path }
    assert server.running?
  end

  def test_a_unix_socket
    path = File.join(folder_with, "app.sock")
    server = serve("probe", bind: path)
    server.connect do |connection|
      assert_equal "probe\n", connection.get("/").body
      assert_equal "probe\n", connection.get("/").body
    end
  end

  def test_the_command_of_the_readme
    arguments = ["-e", "production", "-b", "127.0.0.1", "-p", "0"]
    rack = File.join(HighballServer::EXAMPLES, "rack")
    # Longer than usual: where sources have changed, it builds first.
    server = serve(rack, command: [File.join(HighballServer::ROOT, "bin/highball"), *arguments, rack], within: 600)
    assert_equal "Hello World", server.get("/").body
    assert_equal server.pid, server.status.fetch("pid"), "it hands over under the same pid"
  end

  def test_help_and_version
    help = highball("--help")
    %w[serve status stop --port --workers --threads --bind --environment].each { |word| assert_includes help, word }
    version = highball("--version")
    assert_match(/highball \d+\.\d+\.\d+/, version)
  end

  # `highball status | true`: a reader that has gone is no failure of what was asked for.
  def test_output_that_is_not_read_is_no_error
    server = serve("probe")
    [%w[--help], %w[--version], ["config", "nginx", server.app], ["doctor", "-p", "0", server.app], %w[bench list],
     ["status", *server.which], ["status", "--json", *server.which], ["memory", *server.which],
     ["restart", *server.which], ["refork", *server.which], ["stop", *server.which]].each do |words|
      errors, ended = unread(*words)
      assert_predicate ended, :success?, "#{words.join(' ')}: #{errors}"
      refute_match(/panicked|pipe/i, errors, words.join(" "))
    end
    assert_predicate server.wait, :success?
  end

  def test_a_restart_that_fails_does_so_whether_or_not_it_is_read
    app = folder_with("config.ru" => "run ->(_env) { [200, {}, ['one']] }\n")
    server = serve(app)
    File.write(File.join(app, "config.ru"), "raise 'broken'\n")
    assert_equal 1, unread("restart", *server.which).last.exitstatus
    assert_equal 1, unread("restart", *server.which, errors_too: true).last.exitstatus
    assert_equal "one", server.get("/").body
  end

  # --- servers that do not answer

  def test_one_that_is_stopped_is_named_and_does_not_keep_the_others
    stopped = Array.new(3) { serve("probe") }
    server = serve("probe")
    stop_processes(stopped.map(&:server_pid))
    output = highball("status")
    assert_includes output, "(pid #{server.pid})"
    stopped.each do |one|
      assert_match(/#{one.pid}\.sock \(pid #{one.pid}\) does not answer: no answer within \d+ s; its/, output)
    end
    refute_match(/os error|elapsed/, output)
    output = highball("restart", *server.which)
    refute_match(/does not answer/, output)
  ensure
    stopped&.each { |one| Process.kill("CONT", one.server_pid) }
  end

  def test_the_log_in_json
    server = serve("probe", "--log-format", "json")
    server.get("/raise")
    server.stop
    lines = server.log.lines.grep(/\A\{/)
    refute_empty lines
    lines.each { |line| assert_kind_of Hash, JSON.parse(line) }
  end

  def test_the_access_log
    path = File.join(folder_with, "access.log")
    server = serve("probe", "--access-log", path)
    server.get("/echo?secret=1", { "User-Agent" => "a\"b" })
    server.get("/status?code=404")
    server.stop
    log = File.read(path)
    assert_match(%r{GET /echo.*200}, log)
    assert_match(%r{GET /status.*404}, log)
    assert_equal log.lines.length, log.lines.grep(%r{GET /}).length
  end

  def test_the_access_log_has_the_size_of_highballs_own_answers
    path = File.join(folder_with, "access.log")
    server = serve("probe", "--access-log", path)
    raised = server.get("/raise").body.bytesize
    refused = server.exchange("GET / HTTP/1.1\r\n\r\n").first.body.bytesize
    head = server.request("HEAD", "/raise")
    assert_equal 500, head.status
    server.stop
    sizes = File.readlines(path).map { |line| line[/" (\d+ \d+) "/, 1] }
    assert_equal ["500 #{raised}", "400 #{refused}", "500 0"], sizes.last(3)
    assert_operator [raised, refused].min, :>, 0
  end

  def test_clients_that_leave_are_in_the_access_log
    log, gate = %w[access.log gate].map { |name| File.join(folder_with, name) }
    server = serve(gated(gate), "--access-log", log, threads: 1)
    running = begin_request(server, "GET /running")
    wait_for("the request") { server.status["workers"].first["in_flight"] == 1 }
    leaving = [running, begin_request(server, "GET /queued"),
               begin_request(server, "POST /upload", "Content-Length: 2")]
    wait_for("all of them") { server.status.values_at("queue", "connections") == [1, 3] }
    leaving.each(&:close)
    # That the first has left shows only when its worker is done.
    wait_for("their end") { server.status.values_at("queue", "connections") == [0, 1] }
    File.write(gate, "")
    wait_for("the last line") { File.read(log).include?("/running") }
    statuses = File.readlines(log).to_h { |line| [line[%r{ (/\S*) HTTP}, 1], line[/" (\d+) \d+ "/, 1]] }
    assert_equal %w[499 499 499], statuses.values_at("/running", "/queued", "/upload")
    assert_equal "ok", server.get("/").body
  end

  def test_hup_reopens_an_access_log_that_was_moved
    path = File.join(folder_with, "access.log")
    server = serve("probe", "--access-log", path)
    server.get("/echo?before=1")
    File.rename(path, "#{path}.1")
    server.signal("HUP")
    wait_for("the new log") { File.exist?(path) }
    server.get("/echo?after=1")
    server.stop
    assert_match(/before=1/, File.read("#{path}.1"))
    assert_match(/after=1/, File.read(path))
    refute_match(/before=1/, File.read(path))
  end

  private

  # An application that answers requests for /running only when this file is there.
  def gated(gate)
    folder_with("config.ru" => <<~RUBY)
      run(lambda do |env|
        sleep 0.01 until env["PATH_INFO"] != "/running" || File.exist?("#{gate}")
        [200, {}, ["ok"]]
      end)
    RUBY
  end

  def begin_request(server, line, *fields)
    server.connect.write("#{line} HTTP/1.1\r\nHost: test\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n")
  end

  # Runs the command with a standard output that has no reader any more: [its errors, Process::Status].
  def unread(*words, errors_too: false)
    reader, writer = IO.pipe
    reader.close
    errors, errors_in = IO.pipe
    pid = Process.spawn(HighballServer::ENVIRONMENT, HighballServer::BINARY, *words,
                        in: File::NULL, out: writer, err: errors_too ? writer : errors_in)
    [writer, errors_in].each(&:close)
    text = errors.read
    [text, Process.wait2(pid).last]
  ensure
    errors&.close
  end
end
