# frozen_string_literal: true

require_relative "../../support/held_cable_test_case"
require_relative "../../support/http2_client"
require_relative "../../support/hub_app"

# WebSockets of Action Cable that the front holds: what clients get, and what the application remembers of them.
class HeldCableTest < HeldCableTestCase
  # The same frames as from Action Cable's own server.
  def test_messages_are_those_of_action_cable
    held, relayed = %w[on off].map do |hold|
      start("--hold-cable", hold)
      [conversation, rejected, disconnected]
    end
    assert_equal relayed, held
    assert_equal '{"type":"welcome"}', held.dig(0, 0)
    assert_equal ['{"type":"disconnect","reason":"unauthorized","reconnect":false}', "\x03\xe8".b],
                 held[1].map(&:last).first(2)
  end

  def test_held_clients_have_no_worker
    start
    clients = Array.new(4) { client.subscribe }
    status = @server.status
    assert_equal 4, status.dig("hub", "cable_clients")
    assert_equal 0, @server.full_status["hijacked"]
    clients.first.perform("say", text: "hello")
    assert_equal ["hello"], clients.map(&:text).uniq
    clients.each(&:close)
    wait_for("their ends") { events.scan("disconnected guest").length == 4 }
    assert_equal 4, events.scan("unsubscribed guest room").length
    wait_for("none to be held") { @server.status.dig("hub", "cable_clients").zero? }
  end

  # What a connection and a channel keep in instance variables goes from worker to worker.
  def test_the_application_remembers_its_clients
    start(workers: 3)
    one = client(name: "ann").subscribe("a")
    counted = Array.new(40) { one.perform("count").next_message["message"] }
    assert_equal((1..40).map(&:to_s), counted.map { |message| message["text"] })
    HighballServer.kill(counted.last["pid"])
    assert_equal "41", one.perform("count").text, "another worker goes on"
    who = one.perform("who").next_message["message"]
    assert_equal ["ann hello", "/cable", %w[cable ann]], who.values_at("text", "path", "tags")
  end

  def test_streams_of_a_channel
    start(workers: 2)
    one = client.subscribe("a")
    one.perform("join", room: "b").perform("echo", text: "joined")
    assert_equal "joined", one.text
    one.perform("say", to: "b", text: "to b")
    assert_equal "to b", one.text
    one.perform("leave", room: "b").perform("say", to: "b", text: "to none").perform("say", text: "to a")
    assert_equal "to a", one.text
  end

  def test_two_channels_of_a_client
    start(workers: 2)
    one, two = Array.new(2) { client.subscribe("a") }
    one.command("subscribe", identifier: RawCableClient.identifier("c"))
    assert_equal RawCableClient.identifier("c"), one.next_message(type: "confirm_subscription")["identifier"]
    two.perform("say", text: "both")
    broadcast("c", "to c")
    heard = Array.new(2) { one.next_message }.to_h { |message| [message["identifier"], message["message"]["text"]] }
    assert_equal({ RawCableClient.identifier("a") => "both", RawCableClient.identifier("c") => "to c" }, heard)
    one.command("unsubscribe").perform("echo", identifier: RawCableClient.identifier("c"), text: "behind")
    assert_equal "behind", one.text
    broadcast("a", "not for one")
    one.perform("echo", identifier: RawCableClient.identifier("c"), text: "nothing before")
    assert_equal "nothing before", one.text
  end

  def test_messages_of_any_size_and_kind
    start("--max-message", "2m")
    one = client.subscribe
    texts = ["", "<b>&\u2028caf\u00e9 \u{1f600}\"\\", "x" * 100, "x" * 126, "x" * 70_000, "y" * 1_500_000]
    texts.each do |text|
      broadcast("room", text)
      assert_equal text, one.text
    end
    publish_raw("[1,\n 2]")
    assert_equal [1, 2], one.next_message["message"]
  end

  def test_pings_and_order
    start(workers: 2)
    one = client.subscribe
    assert_in_delta Time.now.to_i, one.await_ping["message"], 5
    broadcast("room", "%", times: 500)
    assert_equal Array.new(500, &:to_s), one.texts_until("499")
  end

  def test_exceptions_are_the_applications
    start
    one = client.subscribe
    one.perform("fail").perform("nothing").write_text("no JSON").write_text("[]").perform("echo", text: "still here")
    assert_equal "still here", one.text
    log = File.read(File.join(@folder, "cable.log"))
    assert_includes log, "RuntimeError - boom"
    assert_includes log, "Unable to process RoomChannel#nothing"
  end

  def test_a_slow_action_holds_up_its_client_alone
    start(threads: 2)
    one, two = Array.new(2) { client.subscribe }
    one.perform("nap", seconds: 1).perform("echo", text: "behind")
    two.perform("say", text: "now")
    assert_equal "now", two.text
    assert_equal %w[now awake behind], Array.new(3) { one.text }
  end

  def test_over_http2_and_unix_sockets
    start("--http2-cleartext", "on")
    Http2Client.tcp(@server.port).greet.use do |http2|
      fields = { ":protocol" => "websocket", "sec-websocket-version" => "13", "origin" => "http://test",
                 "sec-websocket-protocol" => "actioncable-v1-json" }
      http2.write_frame(Http2Client::HEADERS, Http2Client::END_HEADERS, 1, http2.head("CONNECT", "/cable", fields))
      http2.read_until { http2.part(1).statuses == [200] }
      command = JSON.generate({ command: "subscribe", identifier: RawCableClient.identifier })
      http2.send_body(1, WebSocketCases.frame(WebSocketCases::TEXT, command), is_complete: false)
      http2.read_until { http2.part(1).body.include?("confirm_subscription") }
      broadcast("room", "over HTTP/2")
      http2.read_until { http2.part(1).body.include?("over HTTP/2") }
      assert_equal 1, @server.status.dig("hub", "cable_clients")
      http2.send_body(1, WebSocketCases.close, is_complete: false)
      http2.read_until { http2.part(1).is_complete }
    end
    wait_for("the end") { events.include?("disconnected guest") }
  end

  # No field of a client's makes a question of its request, or an answer for the front.
  def test_forged_fields
    start
    fields = { "highball.cable" => "1", "Highball-Cable" => "1", "highball.cable_offer" => "full", "Cookie" => "a=b" }
    body = JSON.generate(kind: "command", state: "{}", channels: [], text: "{}")
    answer = @server.request("POST", "/cable", fields, body)
    assert_equal 404, answer.status
    assert_equal 404, @server.request("GET", "/cable", fields).status
    one = client({}, fields).subscribe
    who = one.perform("who").next_message["message"]
    assert_equal ["a=b", %w[HTTP_HIGHBALL.CABLE HTTP_HIGHBALL_CABLE]],
                 who.values_at("cookie", "marks")
    assert_equal "connected guest\n", events
  end

  private

  def client(query = {}, fields = {}, **more)
    super("/cable?#{Rack::Utils.build_query(query.merge(more))}", fields)
  end

  # What is no JSON of Action Cable's.
  def publish_raw(text)
    assert system(*HubApp.script("Highball.publish('cable:room', #{text.dump})"), chdir: @folder)
  end

  # What a client sends, and how many frames it gets for that.
  COMMANDS = [
    [1, "subscribe"], [0, "subscribe"], [1, "subscribe", { identifier: RawCableClient.identifier("forbidden") }],
    [0, "subscribe", { identifier: '{"channel":"<None>"}' }], [0, "subscribe", { identifier: "<no JSON>" }],
    [1, "message", { action: "echo", text: "<b>&\u2028" }], [1, "message", { action: "say", text: "caf\u00e9 <i>" }],
    [0, "message", { data: "{" }], [0, "dance"], [0, "unsubscribe"], [0, "unsubscribe"],
    [0, "message", { action: "say" }], [1, "subscribe"], [0, "message", { action: "hang_up" }]
  ].freeze

  # All payloads that this client gets.
  def conversation
    one = RawCableClient.new(@server.connect, "/cable?name=ann", welcome: false)
    frames = [one.next_frame]
    COMMANDS.each do |count, name, more|
      more = { data: JSON.generate(more) } if more&.key?(:action)
      one.command(name, identifier: RawCableClient.identifier, **more.to_h)
      count.times { frames << one.next_frame }
    end
    (frames + one.frames_to_close).map { |_, payload| payload.gsub(/"pid":\d+/, '"pid":0') }
  end

  def rejected
    one = RawCableClient.new(@server.connect, "/cable?name=evil", welcome: false)
    one.frames_to_close
  end

  def disconnected
    one = RawCableClient.new(@server.connect, "/cable?name=bob").subscribe
    @server.get("/disconnect?name=bob")
    one.frames_to_close
  end
end
