# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/admin"
require_relative "../../support/behind_web_servers"
require_relative "../../support/load"

# The time between TERM and the end of accepting, in which load balancers turn away (`drain_grace`).
class DrainGraceTest < E2ETest
  include Admin
  include BehindWebServers

  ROLLS = LEVEL == "full" ? 50 : 2 # deploys of both servers
  RESTARTS = LEVEL == "full" ? 100 : 2

  def test_requests_are_served_during_the_grace
    server = serve("probe", *admin, "--drain-grace", "1s")
    kept = server.connect
    assert_nil kept.get("/")["connection"]
    began = Deadline.now
    server.signal("TERM")
    wait_for("the server to be unready") { ask_admin("/readyz").status == 503 }
    assert_equal "not ready: stopping", ask_admin("/readyz").body.lines.first.chomp
    assert_equal 200, ask_admin("/livez").status
    [kept.get("/"), server.get("/")].each { |answer| assert_closes(answer) }
    assert_predicate kept, :ended?
    assert_equal 0, server.wait.exitstatus
    assert_operator Deadline.now - began, :>=, 1
    assert_includes server.log, "stopped; every request was answered"
  end

  def test_a_second_signal_ends_the_grace
    server = serve("probe", *admin, "--drain-grace", "1m")
    server.signal("TERM")
    wait_for("the server to be unready") { ask_admin("/readyz").status == 503 }
    # Signals that come together count as one, so there may have to be several; the last one may find nothing any more.
    wait_for("the end of accepting", within: 20) do
      server.log.match?(/INFO {2}stopping$/) || !server.signal("TERM")
    rescue Errno::ESRCH
      true
    end
    assert_match(/INFO {2}stopping$/, server.log)
    assert_equal 0, server.wait(within: 20).exitstatus
  end

  def test_workers_that_die_during_the_grace_are_replaced
    server = serve("probe", *admin, "--drain-grace", "2s")
    server.signal("TERM")
    wait_for("the server to be unready") { ask_admin("/readyz").status == 503 }
    HighballServer.kill(server.worker_pids.fetch(0))
    assert_equal 200, server.get("/").status
    assert_equal 0, server.wait.exitstatus
  end

  def test_a_server_that_has_not_booted_stops_at_once
    app = folder_with("config.ru" => "sleep")
    @servers << server = HighballServer.new(app, *admin, "--drain-grace", "1m")
    wait_for("the socket") { File.socket?(admin_path) }
    wait_for("the boot") { server.log.include?("booting") }
    server.stop(within: 10)
  end

  def test_rolling_deploys_behind_haproxy_fail_no_request
    needs("haproxy")
    places = Array.new(2) { Array.new(2) { free_port } }
    servers = places.map { |place| start_at(place) }
    proxy = start_haproxy(places)
    outcomes = Load.during(proxy, clients: 4) do |load|
      ROLLS.times do
        places.each_with_index do |place, index|
          assert_equal 0, servers[index].stop.exitstatus
          servers[index] = start_at(place)
          wait_for("HAProxy to find server #{index}") { states.fetch("s#{index}") == "UP" }
        end
      end
      RESTARTS.times { restart(servers.fetch(0)) }
      before = load.count
      wait_for("more requests") { load.count > before + 20 }
    end
    assert_equal [200], outcomes.map(&:result).uniq, outcomes.map(&:result).tally
    assert_operator outcomes.length, :>, 100
  end

  private

  def assert_closes(answer)
    assert_equal [200, "close"], [answer.status, answer["connection"]]
  end

  def start_at((port, admin_port))
    command = [HighballServer::BINARY, "serve", "-b", "127.0.0.1:#{port}", "--admin", "127.0.0.1:#{admin_port}",
               "-e", "production", "-w", "2", "--drain-grace", "400ms"]
    serve("probe", command: command)
  end

  def restart(server)
    highball("restart", "--port", server.port.to_s, within: 60)
  end

  def start_haproxy(places)
    @stats = File.join(folder_with, "stats.sock")
    servers = places.each_with_index.map do |(port, admin_port), index|
      "server s#{index} 127.0.0.1:#{port} check port #{admin_port} inter 50ms fall 1 rise 1"
    end
    start_web_server("haproxy", <<~CONF)
      global
        stats socket #{@stats}
      defaults
        mode http
        timeout connect 5s
        timeout check 10s # else a check that takes longer than 50 ms, on a busy machine, has failed
        timeout client 60s
        timeout server 60s
      frontend visitors
        bind :80
        bind [::]:80 v6only
        default_backend highball
      backend highball
        option httpchk GET /readyz
        #{servers.join("\n  ")}
    CONF
  end

  # The state of each server as HAProxy sees it.
  def states
    table = UNIXSocket.open(@stats) do |socket|
      socket.write("show stat\n")
      socket.read
    end
    lines = table.lines.map { |line| line.split(",") }
    lines.filter_map { |line| [line[1], line[17]] if line[0] == "highball" }.to_h
  end
end
