# frozen_string_literal: true

require_relative "../../support/upgrade_test_case"
require_relative "../../support/load"
require_relative "../../support/admin"

# Health checks on the addresses of the option `admin`.
class AdminTest < UpgradeTestCase
  include Admin

  def test_a_server_that_serves_is_live_and_ready
    server = serve("probe", "--admin", "127.0.0.1:0", workers: 2)
    address = server.status["admin"].fetch(0)
    assert_match(%r{\Ahttp://127\.0\.0\.1:\d+\z}, address)
    port = address[/\d+\z/].to_i
    live = HttpConnection.tcp(port).use { |connection| connection.get("/livez", { "Host" => "127.0.0.1:#{port}" }) }
    assert_equal [200, "text/plain; charset=utf-8", "close"], [live.status, live["content-type"], live["connection"]]
    assert_equal "live\nprobe: serving; workers: 2, threads: 6, busy: 0, waiting requests: 0\n", live.body
    ready = HttpConnection.tcp(port).use do |connection|
      connection.get("/readyz", { "Host" => "localhost", "Accept" => "application/json" })
    end
    health = JSON.parse(ready.body)
    assert_equal [200, "ready"], [ready.status, health["status"]]
    assert_equal(["probe", "serving", true], health.dig("apps", 0).values_at("name", "state", "is_ready"))
    assert_equal 404, server.get("/livez").status # the application's
  end

  def test_requests_that_are_none
    serve("probe", *admin)
    assert_equal 404, ask_admin("/other").status
    assert_equal 404, ask_admin("/readyz/other").status
    assert_equal 200, ask_admin("/readyz/probe").status
    post = ask_admin("/livez", method: "POST")
    assert_equal [405, "GET, HEAD"], [post.status, post["allow"]]
    head = ask_admin("/livez", method: "HEAD")
    assert_equal [200, ""], [head.status, head.body]
    { "GET /livez HTTP/1.0\r\n\r\n" => 200, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" => 400, "\x16\x03\x01\0" => 400,
      "GET http://a/livez HTTP/1.1\r\n\r\n" => 400, "GET /livez HTTP/1.1\r\nX: #{'x' * 9000}" => 431,
      "GET /livez HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n" => 400 }.each do |bytes, status|
      assert_equal status, HttpConnection.unix(admin_path).write(bytes).read_response.status, bytes[0, 40]
    end
  end

  # A website that resolves its name to the address of the server for a moment (DNS rebinding).
  def test_names_of_other_hosts
    server = serve("probe", "--admin", "127.0.0.1:0", "--admin-host", "blog.internal")
    port = server.status["admin"].fetch(0)[/\d+\z/].to_i
    ask = ->(host) { HttpConnection.tcp(port).use { |one| one.get("/readyz", { "Host" => host }).status } }
    hosts = %W[evil.example evil.example:#{port} 127.0.0.1.evil.example blog.internal:1 [::1]:1 a.localhost]
    assert_equal([421, 421, 421, 200, 200, 200], hosts.map { |host| ask.call(host) })
  end

  # Clients that send nothing do not keep others out for long.
  def test_more_connections_than_there_is_room_for
    serve("probe", *admin)
    idle = Array.new(200) { HttpConnection.unix(admin_path) }
    assert_equal 200, ask_admin("/livez", within: 20).status
  ensure
    idle&.each(&:close)
  end

  def test_it_is_not_ready_while_it_boots
    app = folder_with("config.ru" => "sleep 0.01 until File.exist?(File.join(__dir__, 'go'))\n#{WAITS}")
    server = HighballServer.new(app, *admin)
    @servers << server
    wait_for("the socket") { File.socket?(admin_path) }
    answer = ask_admin("/readyz")
    assert_equal [503, "not ready: booting: #{File.basename(app)}"], [answer.status, answer.body.lines.first.chomp]
    assert_equal 200, ask_admin("/livez").status
    FileUtils.touch(File.join(app, "go"))
    wait_for("readiness") { ask_admin("/readyz").status == 200 }
    assert_equal 200, server.get("/").status
  end

  def test_one_that_failed_to_boot_is_not_ready
    app = folder_with("config.ru" => "raise 'no'")
    other = folder_with("config.ru" => WAITS)
    config = File.join(folder_with, "highball.toml")
    File.write(config, "[[app]]\npath = '#{app}'\nname = 'bad'\nhosts = ['bad.test']\n" \
                       "[[app]]\npath = '#{other}'\nname = 'good'\n")
    command = [HighballServer::BINARY, "-c", config, "-b", "127.0.0.1", "-p", "0", "-e", "production", *admin]
    @servers << HighballServer.start(other, command: command)
    wait_for("readiness") { ask_admin("/readyz").status == 200 }
    assert_equal([503, 200], %w[bad good].map { |name| ask_admin("/readyz/#{name}").status })
    assert_includes ask_admin("/readyz").body, "bad: failed;"
  end

  def test_all_workers_are_stuck
    app = folder_with("config.ru" => WAITS)
    server = serve(app, *admin, "--stuck-after", "500ms", workers: 2, threads: 2)
    clients = Array.new(6) { server.connect.tap { |client| client.send_request("GET", "/wait") } }
    # On a busy machine, time in which the server does not run counts, too: so some more than it takes.
    wait_for("the app to be stuck") { ask_admin("/readyz").body[/stuck: .* for ([\d.]+) s/, 1].to_f > 1.5 }
    times = Array.new(20) { timed { assert_stuck } }
    assert_operator times.sort[10], :<, 0.01, "an answer takes #{times}"
    FileUtils.touch(File.join(app, "go"))
    assert_equal([200], clients.map { |client| client.read_response.status }.uniq)
    wait_for("readiness") { ask_admin("/readyz").status == 200 }
  ensure
    clients&.each(&:close)
  end

  # Requests wait meanwhile, and no worker computes.
  def test_stopped_workers_are_stuck
    server = serve("probe", *admin, "--stuck-after", "500ms")
    pids = server.worker_pids
    stop_processes(pids)
    clients = Array.new(4) { server.connect.tap { |client| client.send_request("GET", "/") } }
    wait_for("the app to be stuck") { ask_admin("/readyz").status == 503 }
    assert_equal 200, ask_admin("/livez").status
  ensure
    pids&.each { |pid| HighballServer.kill(pid, "CONT") }
    clients&.each(&:close)
  end

  def test_a_hot_restart_takes_the_address_over
    server = serve(version(1), *admin, "--drain-timeout", "1s")
    failed = []
    asking = true
    client = Thread.new do
      while asking
        answer = ask_admin("/readyz")
        failed << answer unless answer&.status == 200
      end
    end
    pid = upgrade(server)
    wait_for("the end of the old process") { server.status["predecessor"] && highballs(server).length <= 2 }
    asking = false
    client.join # raises what it has met: a refusal, or a reset
    assert_empty failed
    assert_equal [pid, ["unix:#{admin_path}"]], server.status.values_at("pid", "admin")
    assert_equal 200, ask_admin("/readyz").status
    server.stop
    refute_path_exists admin_path
  end

  private

  def assert_stuck
    %w[/livez /readyz].zip([200, 503]) do |path, status|
      answer = ask_admin(path)
      assert_equal status, answer.status
      assert_match(/stuck: no thread was free and no request answered for \d+\.\d s; .*requests: 2$/, answer.body)
    end
  end

  def timed
    began = Deadline.now
    yield
    (Deadline.now - began) / 2
  end
end
