# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/event_client"
require_relative "../../support/hub_app"

# Each limit on held responses and messages, and what applications cannot do to each other.
class HubLimitsTest < E2ETest
  def start(*options, **settings)
    @server = serve(folder_with("config.ru" => HubApp::CONFIG), *options, **settings)
  end

  def publish(data, path = "/publish", server = @server) = server.request("POST", path, {}, data)

  def test_responses_and_streams
    start("--max-held", "2", "--max-held-streams", "3")
    clients = Array.new(2) { EventClient.new(@server).open }
    refused = @server.get("/events")
    assert_equal [503, "5"], [refused.status, refused["retry-after"]]
    clients.each(&:close)
    wait_for("room") { @server.status["hub"]["held"].zero? }
    EventClient.new(@server, "/events?of=a,b,c").open.close
    assert_equal 502, @server.get("/events?of=a,b,c,d").status
    assert_includes @server.log, "max_held_streams"
  end

  def test_messages
    start("--max-message", "1k")
    one = EventClient.new(@server).open
    assert_equal 200, publish("x" * 1024).status
    refused = publish("x" * 1025)
    assert_equal [422, true], [refused.status, refused.body.include?("max_message allows 1024")]
    assert_equal 422, publish("x" * 5_000_000).status, "all of it is read, and the connection is used again"
    assert_equal 200, publish("y").status
    assert_equal ["x" * 1024, "y"], one.read_events(2).data
    one.close
  end

  def test_names_of_any_bytes
    start
    good = ["%C3%A9", "a%20b", "%FF", "x" * 256, "%22%7B%5C"]
    clients = good.map { |name| EventClient.new(@server, "/events?of=#{name}").open }
    good.each_index { |number| assert_equal 200, publish("to #{number}", "/publish?to=#{good[number]}").status }
    clients.each_with_index { |one, number| assert_equal ["to #{number}"], one.read_events(1).data }
    ["to=", "to=a%2Cb", "to=%20a", "to=a%0Ab", "to=%00", "to_bytes=257", "to_bytes=1000000"].each do |query|
      assert_equal 422, publish("x", "/publish?#{query}").status, query
    end
    ["of=", "of=,", "of_bytes=257", "of_bytes=20000"].each do |query|
      assert_equal 502, @server.get("/events?#{query}").status, query
    end
    ["a%0Ab", "x" * 300].each { |event| assert_equal 422, publish("x", "/publish?event=#{event}").status }
    assert_equal 422, publish("\xFF").status
    clients.each(&:close)
  end

  # A limit on all hubs, of which one of two applications gets half.
  def test_memory
    start("--max-hub", "1m", "--hub-history", "100000")
    assert_equal 200, publish("#{'x' * 10_000} %", "/publish?times=500").status
    hub = @server.status["hub"]
    assert_operator hub["bytes"], :<=, MIB
    assert_operator hub["kept"], :>, 50
  end

  def test_applications_do_not_reach_each_other
    server = serve_two_applications
    clients = Array.new(2) { |number| EventClient.new(server, "/app#{number}/events").open }
    2.times { |number| publish("of #{number}", "/app#{number}/publish", server) }
    clients.each_with_index do |one, number|
      assert_equal ["of #{number}"], one.read_events(1).data
      one.read_some(0.2)
      assert_equal 1, one.events.length
    end
    # The id of a message of one application is none of the other's messages.
    10.times { publish("x", "/app0/publish", server) }
    crossed = EventClient.new(server, "/app1/events")
    crossed.last_id = clients[0].last_id
    crossed.open.read_some(0.3)
    refute_includes crossed.data, "x"
    [*clients, crossed].each(&:close)
  end

  # After a hot restart, clients are still with the old process, and an application publishes without end.
  def test_a_flood_holds_up_no_other_application_in_a_hot_restart
    long
    server = serve_two_applications("--hijacked-drain-timeout", "5m", "--drain-timeout", "5m")
    clients = Array.new(8) { EventClient.new(server, "/app1/events").open }
    flooded = Array.new(8) { EventClient.new(server, "/app0/events?of=flood").open }
    highball("upgrade", *server.which, within: 60)
    assert_equal 200, server.get("/app0/flood?bytes=100000").status
    300.times { |number| publish(number.to_s, "/app1/publish", server) }
    stayed = clients.select { |one| one.stays_for(300) }
    assert_operator stayed.length, :>, 4
    stayed.each { |one| assert_equal Array.new(300, &:to_s), one.data }
    [*clients, *flooded].each(&:close)
  end

  # What a process sends that is no worker's.
  def test_garbage_on_the_socket_of_publishers
    start
    name = hub_address.split("/", 2).first
    ["", "x", "\xFF" * 8, "\x03\0\0\0abc", "\x88\x13\0\0#{'x' * 100}"].each do |bytes|
      UNIXSocket.open("\0#{name}") do |socket|
        socket.write(bytes)
        socket.close_write
        answer = socket.read
        assert answer.empty? || answer.include?("has this key"), answer.inspect
      rescue Errno::ECONNRESET
        next # it has not read all of that
      end
    end
    name, credentials = hub_address.split("/", 2)
    [[9], [1, 5000, 0, 0], [1, 0, 0, 1]].each do |order|
      UNIXSocket.open("\0#{name}") do |socket|
        socket.write([credentials.bytesize].pack("L<"), credentials, order.pack("CL<*"))
        assert_empty socket.read
      end
    end
    sockets = Array.new(50) { UNIXSocket.new("\0#{name}") } # they say nothing
    assert_equal 200, publish("x").status
    sockets.each { |socket| assert socket.wait_readable(5) && socket.read(1).nil? }
  end

  private

  def serve_two_applications(*options)
    folders = Array.new(2) { folder_with("config.ru" => HubApp::CONFIG) }
    config = folders.each_with_index.map do |folder, number|
      "[[app]]\nname = \"app#{number}\"\npath = #{folder.inspect}\nprefix = \"/app#{number}\"\n"
    end
    file = File.join(folder_with, "highball.toml")
    File.write(file, config.join)
    command = [HighballServer::BINARY, "--config", file, "-e", "production", "-b", "127.0.0.1", "-p", "0", *options]
    serve(folders.first, command: command, ready: "/app0/")
  end

  def hub_address
    socket = Dir[File.join(HighballServer::CONTROL, "*.sock")].max_by { |path| File.mtime(path) }
    UNIXSocket.open(socket) do |control|
      control.write("{\"command\":\"hub\"}\n")
      JSON.parse(control.read)["apps"].first["address"]
    end
  end
end
