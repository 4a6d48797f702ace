# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/agent_check"
require_relative "../../support/behind_web_servers"
require_relative "../../support/load"

# HAProxy with the configuration that `highball config haproxy --machines` prints, in front of two machines: addresses
# of the loopback network.
class SeveralMachinesTest < E2ETest
  include AgentCheck
  include BehindWebServers

  MACHINES = %w[127.0.0.2 127.0.0.3].freeze
  ROLLS = LEVEL == "full" ? 20 : 1 # deploys of both machines
  APP = <<~RUBY
    run lambda { |env|
      sleep 0.01 until File.exist?(File.join(__dir__, "go")) if env["PATH_INFO"] == "/wait"
      sleep 0.002
      [200, {}, [File.basename(__dir__)]]
    }
  RUBY
  # HAProxy's names of the columns of `show stat`.
  NAME = 1
  STATUS = 17
  WEIGHT = 18

  def setup
    super
    needs("haproxy")
    @ports = Array.new(3) { free_port } # for requests, health checks and agent checks, on each machine
    @app = folder_with("127.0.0.2/config.ru" => APP, "127.0.0.3/config.ru" => APP)
    @machines = MACHINES.to_h { |machine| [machine, start(machine)] }
  end

  def test_a_busy_machine_gets_fewer_requests
    # Without its own look at connections: the weights alone count.
    proxy = start_proxy { |printed| printed.sub("balance leastconn", "balance roundrobin") }
    clients = waiting("127.0.0.2", 2)
    wait_for("a lower weight") { (40..60).cover?(weight_of("127.0.0.2")) }
    answers = proxy.connect { |visitor| Array.new(200) { visitor.get("/").body } }.tally
    # By the weights of 50 and 100, the busy machine gets a third.
    assert_in_delta 0.33, answers.fetch("127.0.0.2") / 200.0, 0.1, answers
    release("127.0.0.2")
    clients.each { |client| assert_equal 200, client.read_response.status }
    wait_for("the weight to rise") { weight_of("127.0.0.2") > 60 }
  ensure
    clients&.each(&:close)
  end

  def test_restarts_of_machines_fail_no_request
    # Without a health check that fails while a machine stops: the agent check alone counts.
    proxy = start_proxy { |printed| printed.sub("GET /readyz", "GET /livez") }
    outcomes = Load.during(proxy, clients: 4) do |load|
      ROLLS.times { MACHINES.each { |machine| roll(machine) } }
      before = load.count
      wait_for("more requests") { load.count > before + 50 }
    end
    assert_equal [200], outcomes.map(&:result).uniq, outcomes.map(&:result).tally
    assert_operator outcomes.length, :>, 200
  end

  def test_restarts_without_an_agent_check_fail_no_request
    proxy = start_proxy { |printed| printed.sub(/ agent-check agent-port.*/, "") }
    outcomes = Load.during(proxy, clients: 4) { roll("127.0.0.2", to: "DOWN") }
    assert_equal [200], outcomes.map(&:result).uniq, outcomes.map(&:result).tally
  end

  def test_a_stuck_machine_is_taken_out_and_comes_back
    # The health check succeeds: the agent check alone counts.
    proxy = start_proxy { |printed| printed.sub("GET /readyz", "GET /livez") }
    clients = waiting("127.0.0.3", 6)
    wait_for("HAProxy to take it out") { status_of("127.0.0.3").start_with?("DOWN") }
    answers = Load.during(proxy, clients: 4) { |load| wait_for("requests") { load.count > 50 } }
    assert_equal [200], answers.map(&:result).uniq
    assert_equal(["127.0.0.2"], Array.new(10) { proxy.connect { |visitor| visitor.get("/").body } }.uniq)
    release("127.0.0.3")
    clients.each { |client| assert_equal 200, client.read_response.status }
    wait_for("HAProxy to take it back") { status_of("127.0.0.3") == "UP" }
    wait_for("an answer of both") { Array.new(20) { proxy.connect { |one| one.get("/").body } }.uniq.length == 2 }
  ensure
    clients&.each(&:close)
  end

  def test_a_dead_machine_is_taken_out
    proxy = start_proxy
    @machines["127.0.0.3"].own_pids.each { |pid| HighballServer.kill(pid) }
    wait_for("HAProxy to take it out") { status_of("127.0.0.3").start_with?("DOWN") }
    assert_equal([200], Array.new(10) { proxy.connect { |visitor| visitor.get("/").status } }.uniq)
    @servers.delete(@machines["127.0.0.3"]).tap { |server| server.wait && server.finish }
  end

  private

  def start(machine)
    port, admin_port, agent_port = @ports
    folder = File.join(@app, machine)
    command = [HighballServer::BINARY, "serve", "-b", "127.0.0.1:0", "-b", "#{machine}:#{port}",
               "--admin", "#{machine}:#{admin_port}", "--agent-check", "#{machine}:#{agent_port}", "-e", "production",
               "-w", "2", "-t", "2", "--drain-grace", "800ms", "--stuck-after", "500ms", folder]
    serve(folder, command: command)
  end

  # A proxy that looks ten times as often, once it finds both machines.
  def start_proxy
    port, admin_port, agent_port = @ports
    printed = printed_for("haproxy", File.join(@app, MACHINES.first), "--machines", MACHINES.join(","),
                          "-b", "0.0.0.0:#{port}", "--admin", "0.0.0.0:#{admin_port}",
                          "--agent-check", "0.0.0.0:#{agent_port}", "--host", "test")
    @stats = File.join(folder_with, "stats.sock")
    printed = yield(printed) if block_given?
    site = "global\n  stats socket #{@stats}\n#{printed.gsub('inter 1s', 'inter 100ms')}"
    start_web_server("haproxy", site).tap do
      wait_for("HAProxy to answer") { answers? } # it serves before that
      wait_for("HAProxy to find both") { MACHINES.all? { |machine| status_of(machine) == "UP" } }
    end
  end

  # What a deploy does on a machine.
  def roll(machine, to: "DRAIN")
    server = @machines.fetch(machine)
    server.signal("TERM")
    wait_for("HAProxy to turn away") { status_of(machine).start_with?(to) }
    assert_equal 0, server.wait.exitstatus
    @machines[machine] = start(machine)
    wait_for("HAProxy to find #{machine}") { status_of(machine) == "UP" }
  end

  def waiting(machine, count)
    server = @machines.fetch(machine)
    Array.new(count) { server.connect.tap { |client| client.send_request("GET", "/wait") } }
  end

  def release(machine) = FileUtils.touch(File.join(@app, machine, "go"))

  # (HAProxy makes the socket's file before it listens.)
  def answers?
    UNIXSocket.new(@stats).close
    true
  rescue Errno::ENOENT, Errno::ECONNREFUSED
    false
  end

  def status_of(machine) = row_of(machine)[STATUS]

  def weight_of(machine) = row_of(machine)[WEIGHT].to_i

  def row_of(machine)
    table = UNIXSocket.open(@stats) do |socket|
      socket.write("show stat\n")
      socket.read
    end
    table.lines.map { |line| line.split(",") }.find { |row| row[NAME] == machine }
  end
end
