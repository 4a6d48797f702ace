# frozen_string_literal: true

require_relative "../../support/extended_cable_client"
require_relative "../../support/held_cable_test_case"
require_relative "../../support/serves_tls"

# Clients of AnyCable's extended protocol, on WebSockets that the front holds: they get what they have missed.
class ExtendedCableTest < HeldCableTestCase
  include ServesTls

  CONFIRMED = "confirm_history"
  REJECTED = "reject_history"

  def test_the_client_learns_where_each_message_is
    start
    one = extended(welcome: false)
    assert_equal ExtendedCableClient::PROTOCOL, one.head["sec-websocket-protocol"]
    assert_match(/\A\h{32}\z/, one.next_message(type: "welcome")["sid"])
    plain = client.subscribe
    one.subscribe.perform("say", text: "hello")
    message = one.next_message
    assert_equal %w[epoch identifier message offset stream_id], message.keys.sort
    assert_equal ["hello", "cable:room"], [message["message"]["text"], message["stream_id"]]
    assert_kind_of Integer, message["offset"]
    assert_equal %w[identifier message], plain.next_message.keys.sort
    one.perform("echo", text: "of the channel itself")
    assert_equal %w[identifier message], one.next_message.keys.sort
  end

  def test_after_a_cut_connection
    start(workers: 2)
    one = extended.subscribe
    broadcast("room", "%", times: 3)
    assert_equal %w[0 1 2], Array.new(3) { one.text }
    one.close
    broadcast("room", "missed %", times: 5)
    broadcast("other", "not for this client")
    two = extended(positions: one.positions).resubscribe
    assert_equal [Array.new(5) { |number| "missed #{number}" }, CONFIRMED], two.texts_to_answer
    two.perform("say", text: "live")
    assert_equal "live", two.text
    assert_equal [[], CONFIRMED], two.replay, "it has everything"
  end

  # What comes live is not repeated, whatever the client asks for.
  def test_a_command_for_what_came_before
    start
    one = extended.subscribe
    broadcast("room", "%", times: 4)
    first = one.text && one.positions.dup
    two = extended.subscribe
    broadcast("room", "live")
    assert_equal "live", two.text
    assert_equal [%w[1 2 3], CONFIRMED], two.replay({ streams: first })
    assert_equal [[], CONFIRMED], two.replay({ streams: first })
    broadcast("room", "next")
    assert_equal "next", two.text
  end

  def test_several_streams_of_a_channel
    start
    one = extended.subscribe("a")
    one.perform("join", room: "b").perform("echo", text: "joined")
    one.text
    2.times { |number| broadcast(%w[a b][number], number.to_s) }
    assert_equal %w[0 1], [one.text, one.text]
    one.close
    6.times { |number| broadcast(%w[a b][number % 2], "missed #{number}") }
    two = extended(positions: one.positions).resubscribe("a")
    # The channel has one of the two streams, and the client learns that the other one is missing.
    assert_equal [["missed 0", "missed 2", "missed 4"], REJECTED], two.texts_to_answer
    two.perform("join", room: "b").perform("echo", text: "joined")
    assert_equal "joined", two.text
    assert_equal [["missed 1", "missed 3", "missed 5"], CONFIRMED], two.replay({ streams: one.positions })
  end

  def test_since_a_time
    start
    before = Time.now.to_i - 1
    broadcast("room", "%", times: 3)
    one = extended.subscribe(history: { since: before, streams: {} })
    assert_equal [%w[0 1 2], CONFIRMED], one.texts_to_answer
    two = extended.subscribe(history: { since: Time.now.to_i + 60 })
    assert_equal [[], CONFIRMED], two.texts_to_answer
    three = extended(positions: one.positions).subscribe(history: { since: before, streams: one.positions })
    assert_equal [[], CONFIRMED], three.texts_to_answer, "a position counts more than a time"
  end

  def test_what_cannot_be_given
    start("--hub-history", "5")
    stream, first = first_position
    broadcast("room", "%", times: 6)
    broadcast("secret", "for others")
    one = extended.subscribe
    {
      "too old" => { stream => first },
      "another server's" => { stream => first.merge(epoch: "0123456789abcdef") },
      "no epoch" => { stream => first.merge(epoch: "") },
      "not published yet" => { stream => first.merge(offset: 1000) },
      "not subscribed" => { "cable:secret" => first.merge(offset: 0) },
      "not there" => { "cable:<none>" => first }
    }.each do |what, streams|
      assert_equal [[], REJECTED], one.replay({ streams: streams }), what
    end
    one.perform("echo", text: "still here")
    assert_equal "still here", one.text
  end

  def test_of_which_channel
    start
    stream, first = first_position
    broadcast("room", "missed")
    one = extended.subscribe("other")
    assert_equal [[], REJECTED], one.replay({ streams: { stream => first } }), "it has another stream"
    assert_equal [[], REJECTED], one.replay({ since: 1 }, identifier: RawCableClient.identifier), "not subscribed"
    assert_equal [[], REJECTED], one.replay({ since: 1 }, identifier: "")
    assert_equal "reject_subscription", subscribe_to_forbidden(one)
    one.perform("echo", text: "nothing of it")
    assert_equal "nothing of it", one.next_message_of_any_type.dig("message", "text")
  end

  MALFORMED = [nil, 1, "x", [], { since: -1 }, { since: "now" }, { streams: nil }, { streams: [1] },
               { streams: { "cable:room" => 7 } }, { streams: { "cable:room" => { offset: 1 } } },
               { streams: { "cable:room" => { offset: "1", epoch: "x" } } },
               { streams: { "cable:room" => { offset: 2**70, epoch: "x" } } }].freeze

  def test_malformed_commands
    start
    broadcast("room", "before")
    one = extended.subscribe
    MALFORMED.each { |history| assert_equal [[], REJECTED], one.replay(history), history.inspect }
    deep = %({"command":"history","identifier":#{RawCableClient.identifier.to_json},"history":#{'[' * 5000})
    others = ["{}", '{"command":"history"}', '{"command":["history"],"identifier":{}}', deep]
    others.each { |text| one.write_text(text) }
    assert_equal REJECTED, one.next_message_of_any_type["type"], "an answer for the one with a command"
    one.perform("echo", text: "still here")
    assert_equal "still here", one.text
    two = extended.subscribe(history: { since: "now" })
    assert_equal [[], REJECTED], two.texts_to_answer
  end

  # No worker is asked about them.
  def test_pongs
    start
    one = extended.subscribe
    commands = @server.status.dig("hub", "cable_commands")
    50.times { one.write_text('{"command":"pong"}') }
    one.perform("echo", text: "here")
    assert_equal "here", one.text
    assert_equal commands + 1, @server.status.dig("hub", "cable_commands")
  end

  # Many questions for many messages: the client gets each message once, and others are served.
  def test_a_flood_of_questions
    start("--max-hub", "64m")
    stream, first = first_position
    20.times { broadcast("room", "x" * 200_000) }
    one = extended.subscribe
    command = { command: "history", identifier: RawCableClient.identifier, history: { streams: { stream => first } } }
    asked = WebSocketCases.frame(WebSocketCases::TEXT, JSON.generate(command))
    flood = Thread.new { 200.times { one.connection.write(asked, within: 60) } }
    reading = Thread.new { Array.new(220) { one.next_message_of_any_type["type"] }.tally }
    other = client.subscribe("other")
    other.perform("echo", text: "served")
    assert_equal "served", other.text
    flood.join
    assert_equal({ nil => 20, CONFIRMED => 200 }, reading.value)
  end

  # Connections that are cut at any time, while messages come.
  def test_nothing_is_lost_or_doubled
    start(workers: 2)
    follow_over_cuts(3) { |number| [@server.connect, (10 * number) + 20] }
    wait_for("cuts") { @cuts.min > 5 }
    highball("restart", *@server.which, within: 60)
    end_broadcasts
  end

  # The state of TLS stays in its process. So the server asks these clients to connect again.
  def test_a_hot_restart_over_tls
    long
    start(*tls_options([certificate_for("localhost")]), "--hijacked-drain-timeout", "2s", workers: 2)
    port = tls_port(@server)
    follow_over_cuts(3) { [connect_tls(port), Float::INFINITY] }
    2.times do
      cuts = @cuts.dup
      highball("upgrade", *@server.which, within: 60)
      wait_for("all to connect again") { cuts.zip(@cuts).all? { |before, now| now > before } }
    end
    end_broadcasts
  end

  # A client without TLS goes on in the new process, and knows where it is.
  def test_a_hot_restart
    long
    start(workers: 2)
    one = extended.subscribe
    broadcast("room", "%", times: 2)
    one.text
    first = one.positions.dup
    assert_equal "1", one.text
    highball("upgrade", *@server.which, within: 60)
    broadcast("room", "new")
    assert_equal "new", one.text
    assert_equal first["cable:room"][:epoch], one.positions["cable:room"][:epoch]
    two = extended.subscribe
    assert_equal [%w[1 new], CONFIRMED], two.replay({ streams: first })
    assert_equal [[], CONFIRMED], one.replay({ streams: first }), "it has had them"
  end

  # Action Cable's own protocol has none of it.
  def test_other_clients
    start
    broadcast("room", "before")
    one = client.subscribe(history: { since: 1 })
    one.command("history", history: { since: 1 }).write_text('{"command":"pong"}')
    one.perform("echo", text: "nothing before")
    assert_equal "nothing before", one.next_message_of_any_type.dig("message", "text")
  end

  private

  def extended(**options)
    ExtendedCableClient.new(@server.connect, **options).tap { |one| @clients << one }
  end

  # Name and position of the first message in the stream `room`.
  def first_position
    one = extended.subscribe
    broadcast("room", "first")
    one.text
    one.close
    one.positions.first
  end

  def subscribe_to_forbidden(one)
    one.command("subscribe", identifier: RawCableClient.identifier("forbidden"), history: { since: 1 })
    one.next_message_of_any_type["type"]
  end

  # Broadcasts numbers until #end_broadcasts. Clients follow these over many connections: the block returns the next one
  # for the client with this number, and how many messages are read from it.
  def follow_over_cuts(clients, &next_connection)
    @cuts = Array.new(clients, 0)
    @readers = Array.new(clients) do |number|
      connection, most = yield number
      one = ExtendedCableClient.new(connection).subscribe
      Thread.new { texts_over_cuts(one, most, number, next_connection) }
    end
    @publisher = Thread.new { publish }
  end

  def texts_over_cuts(one, most, number, next_connection)
    texts = []
    loop do
      read(one, most, texts)
      one.close
      return texts if texts.last == "last"

      @cuts[number] += 1
      connection, most = next_connection.call(number)
      one = ExtendedCableClient.new(connection, positions: one.positions).resubscribe
    end
  end

  # Adds up to `most` texts, or those up to the end.
  def read(one, most, texts)
    before = texts.length
    texts << one.text until texts.last == "last" || texts.length - before == most
  rescue EOFError, SystemCallError
    nil # the client is to connect again
  end
end
