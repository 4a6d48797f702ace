# frozen_string_literal: true

# marks: long

require_relative "../../support/e2e_test"
require_relative "../../support/event_client"
require_relative "../../support/hub_app"
require_relative "../../support/replaced_workers"

# Held responses during operations: no message is lost, doubled or out of order, and only a new server ends connections.
# It inherits what the old one keeps, so clients that come back miss nothing.
class HubRestartsTest < E2ETest
  include ReplacedWorkers

  CLIENTS = 50

  def setup
    super
    @folder = folder_with("config.ru" => HubApp::CONFIG)
    @server = serve(@folder, workers: 2)
    @clients = Array.new(CLIENTS) { EventClient.new(@server).open }
    start_publisher
    @reader = Thread.new { concurrently(CLIENTS) { |number| @clients[number].follow { @is_done } } }
  end

  def teardown
    @is_done = true
    @reader&.join(20)
    @publisher&.close
    @clients&.each { |client| client.close unless client.over? }
    super
  end

  def test_restart_refork_and_killed_workers
    replace_workers
    assert_all_came
    assert_equal [1], @clients.map(&:connections).uniq, "no client had to connect again"
  end

  def test_hot_restart
    highball("upgrade", *@server.which, within: 60)
    wait_for("all clients to be with the new server") { @clients.all? { |client| client.connections == 2 } }
    assert_all_came
    assert_empty(@clients.flat_map { |client| client.events.filter_map(&:type) })
  end

  def test_a_stop_ends_held_responses_at_once
    finish_publishing
    wait_for("all messages") { @clients.all? { |client| client.data.last == @last } }
    before = Deadline.now
    @server.stop
    assert_operator Deadline.now - before, :<, 5
  end

  private

  # A process of the application that publishes the numbers from 0 on, and whose last line is the last of them.
  def start_publisher
    code = <<~'RUBY'
      require "io/wait"
      number = -1
      until $stdin.wait_readable(0.02)
        Highball.publish("ticks", (number += 1).to_s)
      end
      puts number
    RUBY
    @publisher = IO.popen(HubApp.script(code), "r+", chdir: @folder, err: %i[child out])
    @clients.first.read_events(1)
  end

  def finish_publishing
    @publisher.close_write
    @last = @publisher.read.chomp
    assert_match(/\A\d+\z/, @last)
  end

  # Each client has got every number once and in order.
  def assert_all_came
    finish_publishing
    wait_for("all messages") { @clients.all? { |client| client.data.last == @last } }
    @is_done = true
    @reader.join
    expected = Array.new(@last.to_i + 1, &:to_s)
    @clients.each do |client|
      found = client.events.map(&:data)
      assert_equal [[], []], [expected - found, found - found.uniq], "lost and doubled"
      assert_equal expected, found
    end
    assert_operator expected.length, :>, 50
  end
end
