# frozen_string_literal: true

require_relative "../../support/held_cable_test_case"

# Each limit on held WebSockets of Action Cable, what clients send that they should not, and what cannot be held.
class HeldCableLimitsTest < HeldCableTestCase
  def test_clients
    start("--max-cable-clients", "2")
    two = Array.new(2) { client.subscribe }
    refused = client
    assert_equal [503, "5"], [refused.head.status, refused.head["retry-after"]]
    two.first.close
    wait_for("room") { @server.status.dig("hub", "cable_clients") == 1 }
    client.subscribe
  end

  def test_the_size_of_a_message
    start("--max-cable-message", "1k")
    one = client.subscribe
    one.perform("echo", text: "x" * 600)
    assert_equal "x" * 600, one.text
    one.write_text("x" * 1025)
    assert_equal [1009, "WebSocket frame length too large"], closed_with(one)
  end

  # Commands without a use: one client has many of them on the way, and others are served.
  def test_a_flood_of_subscriptions
    start("--max-cable-streams", "20", threads: 2)
    one = client
    commands = Array.new(100) do |number|
      text = JSON.generate(command: "subscribe", identifier: RawCableClient.identifier("room #{number}"))
      WebSocketCases.frame(WebSocketCases::TEXT, text)
    end
    times = LEVEL == "full" ? 10_000 : 1000 # a million commands
    flood = Thread.new { times.times { one.connection.write(commands.join, within: 120) } }
    reading = Thread.new { Array.new(20 + (80 * times)) { one.next_message_of_any_type["type"] }.tally }
    other = client.subscribe
    10.times do |number|
      other.perform("echo", text: number.to_s)
      assert_equal number.to_s, other.text
    end
    flood.join
    found = reading.value
    assert_equal 20, found["confirm_subscription"]
    assert_equal 80 * times, found["reject_subscription"]
    assert_includes @server.log, "max_cable_streams"
  end

  def test_streams_of_a_client
    start("--max-cable-streams", "3")
    one = client.subscribe
    3.times { |number| one.perform("join", room: "more #{number}") }
    assert_equal RESTART, one.frames_to_end.first.last
  end

  # A client that reads nothing is closed once it has missed a message, and others get theirs.
  def test_a_slow_client
    start("--hub-history", "20", "--send-timeout", "60s")
    slow, quick = Array.new(2) { client.subscribe }
    reading = Thread.new { Array.new(300) { quick.text } }
    300.times { @server.request("POST", "/broadcast", {}, "x" * 100_000) }
    assert_equal 300, reading.value.length
    wait_for("the slow one to be closed") { @server.status.dig("hub", "cable_clients") == 1 }
    assert_equal 1, @server.status.dig("hub", "slow_closed")
    slow.close
  end

  def test_malformed_frames_end_as_with_action_cable
    long
    held, relayed = %w[on off].map do |hold|
      start("--hold-cable", hold, "--max-cable-message", "512k")
      malformed_cases.to_h { |one| [one.name, end_of(one)] }
    end
    different = relayed.keys.reject { |name| held[name] == relayed[name] }
    assert_empty(different.map { |name| "#{name}: #{relayed[name].inspect} became #{held[name].inspect}" })
    assert_operator relayed.length, :>, 200
  end

  def test_applications_do_not_reach_each_other
    folders = Array.new(2) { folder_with("config.ru" => CableApp.config) }
    config = folders.each_with_index.map do |folder, number|
      "[[app]]\nname = \"app#{number}\"\npath = #{folder.inspect}\nprefix = \"/app#{number}\"\n"
    end
    file = File.join(folder_with, "highball.toml")
    File.write(file, config.join)
    @server = serve(folders.first, command: [HighballServer::BINARY, "--config", file, "-e", "production", "-b",
                                             "127.0.0.1", "-p", "0"], ready: "/app0/")
    clients = Array.new(2) { |number| client("/app#{number}/cable").subscribe("same") }
    clients.each_with_index { |one, number| one.perform("say", text: "of #{number}") }
    assert_equal(["of 0", "of 1"], clients.map(&:text))
    clients.each { |one| one.perform("echo", text: "nothing else") }
    assert_equal ["nothing else"] * 2, clients.map(&:text)
  end

  # --- What cannot be held ---------------------------------------------------------------------------------

  DEMANDS = {
    "PeriodicChannel does something periodically" =>
      "class PeriodicChannel < RoomChannel\n  periodically(every: 3600) { nil }\nend",
    "QuietChannel overrides transmit" =>
      "class QuietChannel < RoomChannel\n  private def transmit(data, via: nil) = super\nend",
    "Connection overrides on_open" => "class Connection\n  def on_open = super\nend",
    "BlockChannel has a block for the messages of a stream" => <<~RUBY,
      class BlockChannel < RoomChannel
        def subscribed = stream_from(room) { |message| transmit({ text: "by a block", of: message }) }
      end
    RUBY
    "LockChannel keeps @lock, an object of Thread::Mutex" =>
      "class LockChannel < RoomChannel\n  def subscribed = super && (@lock = Mutex.new)\nend"
  }.freeze

  DEMANDS.each do |what, code|
    define_method("test_relayed_as_#{what.tr('^a-zA-Z', '_')}") do
      start(more: code)
      channel = code[/class (\w+Channel)/, 1] || "RoomChannel"
      wait_for("Action Cable's own WebSockets") { try_to_subscribe(channel) }
      one = client.subscribe(channel: channel)
      one.perform("say", text: "hello")
      assert_equal channel == "BlockChannel" ? "by a block" : "hello", one.text
      assert_operator @server.full_status["hijacked"], :>, 0
      assert_includes @server.log, what
    end
  end

  private

  # Whether a client that subscribes is not asked to connect again.
  def try_to_subscribe(channel)
    client.subscribe(channel: channel)
    @server.full_status["hijacked"].positive?
  rescue EOFError, SystemCallError
    false
  end

  def closed_with(one)
    _, payload = one.frames_to_end.last
    [payload.unpack1("n"), payload.byteslice(2..)]
  end

  # But for the largest messages, which have another limit.
  def malformed_cases = WebSocketCases.all.reject { |one| one.pieces.sum(&:bytesize) > 500_000 }

  # What comes after the welcome, up to the close frame. On a busy machine, Action Cable now and then closes without a
  # frame: then it is asked again.
  def end_of(test_case, tries: 2)
    one = client
    begin
      test_case.pieces.each { |piece| one.connection.write(piece) }
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # it has been closed
    end
    one.frames_to_close || (end_of(test_case, tries: tries - 1) if tries > 1)
  ensure
    one&.close
  end
end
