# frozen_string_literal: true

# marks: long

require_relative "../../support/held_cable_test_case"

# WebSockets of Action Cable during operations: none is closed, and no broadcast is lost, doubled or out of order.
class HeldCableRestartsTest < HeldCableTestCase
  CLIENTS = 30
  WORKERS = 3

  def setup
    super
    start("--hijacked-drain-timeout", "2s", workers: WORKERS)
    CLIENTS.times { client.subscribe }
  end

  def test_restart_refork_and_killed_workers
    follow
    replace_workers
    end_broadcasts
    @clients.each { |one| assert_equal "2", count_twice(one) }
    assert_equal CLIENTS, @server.status.dig("hub", "cable_clients")
  end

  # An action that was under way in a worker that is killed is not repeated; a subscription is.
  def test_a_worker_is_killed_with_commands_under_way
    one = @clients.first
    pids = @server.worker_pids
    one.perform("nap", seconds: 30)
    wait_for("the action") { File.read(File.join(@folder, "cable.log")).include?("RoomChannel#nap") }
    pids.each { |pid| HighballServer.kill(pid) }
    wait_for("other workers") { (pids & @server.worker_pids).empty? && @server.settled? }
    one.perform("echo", text: "goes on")
    assert_equal "goes on", one.text
    assert_equal 1, File.read(File.join(@folder, "cable.log")).scan("RoomChannel#nap").length
  end

  def test_a_version_without_the_channel_has_its_clients_connect_again
    config = File.join(@folder, "config.ru")
    File.write(config, File.read(config).gsub("RoomChannel", "OtherChannel"))
    highball("restart", *@server.which, within: 60)
    one = @clients.first
    one.perform("echo", text: "x")
    assert_equal RESTARTED, one.frames_to_end.map(&:last)
    other = client.subscribe(channel: "OtherChannel")
    other.perform("echo", text: "hello")
    assert_equal "hello", other.text
  end

  def test_a_version_that_cannot_be_held
    config = File.join(@folder, "config.ru")
    File.write(config, File.read(config).sub("def count", "periodically(every: 3600) { nil }\n  def count"))
    highball("restart", *@server.which, within: 60)
    @clients.first.perform("echo", text: "x")
    assert_includes @clients.first.frames_to_end.map(&:last), RESTART
    client.subscribe
    assert_operator @server.full_status["hijacked"], :>, 0
    assert_includes @server.log, "RoomChannel does something periodically"
  end

  def test_stop
    before = Deadline.now
    @server.signal("TERM")
    ends = concurrently(CLIENTS) { |number| @clients[number].frames_to_end.map(&:last) }
    assert_equal [RESTARTED], ends.uniq
    @server.wait
    assert_operator Deadline.now - before, :<, 10
    assert_equal CLIENTS, File.read(File.join(@folder, "events.txt")).scan("disconnected").length
  end

  private

  def count_twice(one)
    one.perform("count").text
    one.perform("count").text
  end
end
