# frozen_string_literal: true

# marks: long

require_relative "../../support/cable_app"
require_relative "../../support/e2e_test"
require_relative "../../support/raw_cable_client"

# WebSockets of Action Cable during operations: none is closed, and no broadcast is lost, doubled or out of order.
class HeldCableRestartsTest < E2ETest
  CLIENTS = 30
  WORKERS = 3

  def setup
    super
    skip "needs Action Cable" unless Gem::Specification.stubs_for("actioncable").any?
    @folder = folder_with("config.ru" => CableApp.config)
    @server = serve(@folder, "--hijacked-drain-timeout", "2s", workers: WORKERS)
    @clients = Array.new(CLIENTS) { client.subscribe }
  end

  def teardown
    @is_done = true
    @publisher&.join(20)
    @readers&.each { |reader| reader.join(20) }
    @clients&.each(&:close)
    super
  end

  def test_restart_refork_and_killed_workers
    first = @server.worker_pids
    follow
    highball("restart", *@server.which, within: 60)
    assert_empty first & @server.worker_pids
    highball("refork", *@server.which, within: 60)
    wait_for("the workers to serve") { @server.settled? }
    @server.worker_pids.each do |pid|
      HighballServer.kill(pid)
      wait_for("another worker") { !@server.worker_pids.include?(pid) && @server.settled? }
    end
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
    assert_equal [restart_message, [0x03, 0xf4].pack("C*")], one.frames_to_end.map(&:last)
    other = client.subscribe(channel: "OtherChannel")
    other.perform("echo", text: "hello")
    assert_equal "hello", other.text
  end

  def test_a_version_that_cannot_be_held
    config = File.join(@folder, "config.ru")
    File.write(config, File.read(config).sub("def count", "periodically(every: 3600) { nil }\n  def count"))
    highball("restart", *@server.which, within: 60)
    @clients.first.perform("echo", text: "x")
    assert_includes @clients.first.frames_to_end.map(&:last), restart_message
    client.subscribe
    assert_operator @server.full_status["hijacked"], :>, 0
    assert_includes @server.log, "RoomChannel does something periodically"
  end

  def test_stop
    before = Deadline.now
    @server.signal("TERM")
    ends = concurrently(CLIENTS) { |number| @clients[number].frames_to_end.map(&:last) }
    assert_equal [[restart_message, [0x03, 0xf4].pack("C*")]], ends.uniq
    @server.wait
    assert_operator Deadline.now - before, :<, 10
    assert_equal CLIENTS, File.read(File.join(@folder, "events.txt")).scan("disconnected").length
  end

  private

  def client = RawCableClient.new(@server.connect, "/cable", {})
  def restart_message = '{"type":"disconnect","reason":"server_restart","reconnect":true}'

  def count_twice(one)
    one.perform("count").text
    one.perform("count").text
  end

  # Broadcasts numbers until #end_broadcasts, and has all clients read them.
  def follow
    @last = nil
    @publisher = Thread.new { publish }
    @readers = @clients.map { |one| Thread.new { texts_of(one) } }
  end

  def publish
    number = -1
    until @is_done
      answer = @server.request("POST", "/broadcast?to=room", {}, (number += 1).to_s)
      raise "not published: #{answer.status}" unless answer.status == 200
    end
    @server.request("POST", "/broadcast?to=room", {}, "last")
    number
  end

  def texts_of(one) = one.texts_until("last")

  def end_broadcasts
    @is_done = true
    last = @publisher.value
    @readers.each { |reader| assert_equal [*(0..last).map(&:to_s), "last"], reader.value }
    assert_operator last, :>, 50
    @publisher = @readers = nil
  end
end
