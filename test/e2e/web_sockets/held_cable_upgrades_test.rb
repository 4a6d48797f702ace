# frozen_string_literal: true

# marks: long

require_relative "../../support/held_cable_test_case"
require_relative "../../support/serves_tls"

# WebSockets of Action Cable during hot restarts: the new process goes on with their sockets. Clients over TLS connect
# again.
class HeldCableUpgradesTest < HeldCableTestCase
  include ServesTls

  CLIENTS = 30

  # The old and the new process serve the requests that publish.
  def test_no_client_notices
    start
    CLIENTS.times { client.subscribe }
    assert_equal "1", @clients.first.perform("count").text
    follow
    2.times { upgrade }
    end_broadcasts
    assert_equal(["2"] + (["1"] * (CLIENTS - 1)), @clients.map { |one| one.perform("count").text })
    assert_equal CLIENTS, @server.status.dig("hub", "cable_clients")
    assert_equal CLIENTS, events.scan("connected guest").length, "each has connected once, and none was disconnected"
    @clients.each(&:close)
    wait_for("the application to learn of all ends") { events.scan("disconnected guest").length == CLIENTS }
  end

  # While it goes to the new process, a socket takes two descriptors.
  def test_fewer_descriptors_than_twice_the_clients
    start("--max-connections", "301", fds: { rlimit_nofile: [500, 500] })
    Array.new(300) { client }.each(&:subscribe)
    upgrade
    broadcast("room", "to all")
    assert_equal ["to all"] * 300, @clients.map(&:text)
    assert_includes @server.log, "taken=300 closed=0"
  end

  def test_an_action_that_is_under_way_comes_to_its_end
    start
    one = client.subscribe
    one.perform("nap", seconds: 8)
    wait_for("the action") { File.read(File.join(@folder, "cable.log")).include?("RoomChannel#nap") }
    upgrade
    assert_equal "awake", one.text
    one.perform("count")
    assert_equal "1", one.text
    wait_for("it to be with the new process") { @server.status.dig("hub", "cable_clients") == 1 }
  end

  # What a client had not taken comes from the new process. A client in the middle of a command goes on with it.
  def test_clients_that_are_slow
    start("--hub-history", "1000")
    slow, middle = Array.new(2) { client.subscribe }
    command = JSON.generate(command: "message", identifier: RawCableClient.identifier,
                            data: JSON.generate(action: "echo", text: "whole"))
    frame = WebSocketCases.frame(WebSocketCases::TEXT, command)
    middle.connection.write(frame.byteslice(0, 50))
    texts = Array.new(200) { |number| "#{number} #{'x' * 50_000}" }
    texts.each { |text| broadcast("room", text) }
    upgrade
    middle.connection.write(frame.byteslice(50..))
    assert_equal texts, Array.new(200) { slow.text }
    assert_equal texts + ["whole"], Array.new(201) { middle.text }
    broadcast("room", "from the new process")
    assert_equal ["from the new process"] * 2, [slow.text, middle.text]
  end

  def test_over_unix_sockets
    path = File.join(folder_with, "web.sock")
    start("--bind", "unix:#{path}")
    one = opened(HttpConnection.unix(path)).subscribe
    upgrade
    broadcast("room", "to the new process")
    assert_equal "to the new process", one.text
  end

  def test_over_tls
    certificate = certificate_for("localhost")
    start(*tls_options([certificate]), "--hijacked-drain-timeout", "2s")
    port = tls_port(@server)
    3.times { opened(connect_tls(port)).subscribe }
    upgrade
    ends = concurrently(3) { |number| @clients[number].frames_to_end.map(&:last) }
    assert_equal [RESTARTED], ends.uniq
  end

  def test_the_access_log_has_one_line_for_each_client
    log = File.join(folder_with, "access.log")
    start("--access-log", log, "--access-log-format", "json")
    client.subscribe
    upgrade
    @clients.first.perform("echo", text: "x").text
    @clients.first.close
    wait_for("its line") { lines_of_cable(log).any? }
    assert_equal([101], lines_of_cable(log).map { |line| line["status"] })
  end

  private

  def start(*options, **settings) = super(*options, workers: 2, **settings)

  def upgrade
    highball("upgrade", *@server.which, within: 60)
  end

  def lines_of_cable(log)
    File.readlines(log).map { |line| JSON.parse(line) }.select { |line| line["target"] == "/cable" }
  end
end
