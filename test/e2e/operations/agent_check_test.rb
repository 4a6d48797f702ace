# frozen_string_literal: true

require_relative "../../support/upgrade_test_case"
require_relative "../../support/admin"
require_relative "../../support/agent_check"

# What a server tells load balancers about itself (`agent_check`).
class AgentCheckTest < UpgradeTestCase
  include Admin
  include AgentCheck

  def test_the_weight_follows_the_free_threads
    app = folder_with("config.ru" => WAITS)
    server = serve(app, *agent, workers: 2, threads: 2)
    assert_equal "up ready 100%", ask_agent("\n")
    assert_equal ["127.0.0.1:#{agent_port}"], server.status["agent_check"]
    clients = waiting(server, 2)
    wait_for("half of the weight") { (45..60).cover?(weight("\n")) }
    clients += waiting(server, 6)
    wait_for("the least weight") { weight("\n") < 10 }
    FileUtils.touch(File.join(app, "go"))
    assert_equal([200], clients.map { |client| client.read_response.status }.uniq)
    wait_for("more weight", within: 20) { weight("\n") > 20 }
  ensure
    clients&.each(&:close)
  end

  def test_it_is_answered_while_all_workers_are_stuck
    app = folder_with("config.ru" => WAITS)
    server = serve(app, *agent, "--stuck-after", "500ms")
    clients = waiting(server, 6)
    wait_for("the app to be stuck") { ask_agent("\n") == "down #stuck: #{File.basename(app)}" }
    FileUtils.touch(File.join(app, "go"))
    assert_equal([200], clients.map { |client| client.read_response.status }.uniq)
    wait_for("the server") { ask_agent("\n").start_with?("up ready ") }
  ensure
    clients&.each(&:close)
  end

  def test_a_server_is_down_until_it_has_booted
    app = folder_with("config.ru" => "sleep 0.01 until File.exist?(File.join(__dir__, 'go'))\n#{WAITS}")
    @servers << HighballServer.new(app, *agent)
    wait_for("the address") { FreePort.taken?(agent_port) }
    assert_equal "down #booting: #{File.basename(app)}", ask_agent("\n")
    FileUtils.touch(File.join(app, "go"))
    wait_for("readiness") { ask_agent("\n") == "up ready 100%" }
  end

  def test_applications_by_name
    bad = folder_with("config.ru" => "raise 'no'")
    good = folder_with("config.ru" => WAITS)
    config = File.join(folder_with, "highball.toml")
    File.write(config, "[[app]]\npath = '#{bad}'\nname = 'bad'\nhosts = ['bad.test']\n" \
                       "[[app]]\npath = '#{good}'\nname = 'good'\n")
    command = [HighballServer::BINARY, "-c", config, "-b", "127.0.0.1", "-p", "0", "-e", "production", *agent]
    @servers << HighballServer.start(good, command: command)
    wait_for("the failed boot") { ask_agent("bad") == "down #failed: bad" }
    wait_for("the other application") { ask_agent("good") == "up ready 100%" }
    assert_equal "up ready 100%", ask_agent("good\r"), "telnet ends lines with both characters"
    assert_equal "up ready 100%", ask_agent, "without a name, it is about the whole server"
    assert_equal "down #there is no application with this name", ask_agent("goo")
  end

  def test_a_server_that_stops_is_drained
    app = folder_with("config.ru" => WAITS)
    server = serve(app, *agent, "--drain-grace", "700ms")
    clients = waiting(server, 1)
    server.signal("TERM")
    wait_for("draining") { ask_agent("\n") == "drain" }
    assert_equal 200, server.get("/").status
    wait_for("the end of accepting") { ask_agent("\n") == "maint" }
    assert_raises(Errno::ECONNREFUSED) { server.connect }
    FileUtils.touch(File.join(app, "go"))
    assert_equal 200, clients.first.read_response.status
    assert_equal 0, server.wait.exitstatus
  ensure
    clients&.each(&:close)
  end

  def test_a_hot_restart_takes_the_address_over
    server = serve(version(1), *agent, "--drain-timeout", "1s")
    answers = []
    asking = true
    balancer = Thread.new { answers << ask_agent("\n") while asking }
    upgrade(server)
    wait_for("the end of the old process") { server.status["predecessor"] && highballs(server).length <= 2 }
    asking = false
    balancer.join # raises what it has met: a refusal, or a reset
    assert_operator answers.length, :>, 10
    assert_equal [], answers.grep_v(/\Aup ready \d+%\z/)
    assert_equal ["127.0.0.1:#{agent_port}"], server.status["agent_check"]
  end

  def test_only_ip_addresses_are_possible
    ["unix:/tmp/x", "fastcgi://127.0.0.1:9395"].each do |address|
      output = highball_fails("serve", "--agent-check", address)
      assert_match(/option agent_check: .* is not an IP address with a port; write one such as/, output)
    end
  end

  # --- Hostile clients ---

  def test_clients_that_send_nothing_do_not_keep_others_out
    serve("probe", *agent, *admin)
    idle = Array.new(300) { Socket.tcp("127.0.0.1", agent_port) }
    assert_equal 200, ask_admin("/livez", within: 1).status, "health checks have their own room"
    assert_equal "up ready 100%", ask_agent("\n")
    assert_equal ["up ready 100%"], idle.map { |socket| read_line_of(socket) }.uniq
  ensure
    idle&.each(&:close)
  end

  def test_names_that_are_none
    server = serve("probe", *agent)
    ["x" * 255, "\0\xFF\e[2J", "GET / HTTP/1.1\r\nHost: a\r\n\r", "../probe", "probe probe"].each do |name|
      assert_equal "down #there is no application with this name", ask_agent(name), name[0, 30].inspect
    end
    Socket.tcp("127.0.0.1", agent_port) do |socket|
      socket.write("x" * 1_000_000) # more than is read: the connection may be reset
      socket.read
    rescue SystemCallError
      nil
    end
    assert_equal "up ready 100%", ask_agent("probe")
    assert_equal 200, server.get("/").status
  end

  # A client that sends a letter at a time, and another that never reads, for as long as they may.
  def test_slow_clients_are_cut_off
    serve("probe", *agent)
    slow = Socket.tcp("127.0.0.1", agent_port)
    began = Deadline.now
    slow.write("p") until slow.wait_readable(0.05)
    assert_operator Deadline.now - began, :<, 2
  ensure
    slow&.close
  end

  private

  # Clients whose requests the application answers when it may.
  def waiting(server, count)
    Array.new(count) { server.connect.tap { |client| client.send_request("GET", "/wait") } }
  end
end
