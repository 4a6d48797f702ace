# frozen_string_literal: true

require "net/http"
require_relative "../../support/e2e_test"
require_relative "../../support/event_client"
require_relative "../../support/http2_client"
require_relative "../../support/hub_app"

# Responses that the front holds, for messages that the application publishes.
class HeldResponsesTest < E2ETest
  def start(*options, **settings)
    @folder = folder_with("config.ru" => HubApp::CONFIG)
    @server = serve(@folder, *options, **settings)
  end

  def client(path = "/events", headers = {})
    EventClient.new(@server, path).open(headers).tap { |one| (@clients ||= []) << one }
  end

  def teardown
    @clients&.each { |one| one.close unless one.over? }
    super
  end

  def publish(data, path = "/publish") = @server.request("POST", path, {}, data)
  def hub = @server.status["hub"]

  def test_messages_follow_the_applications_body_in_order
    start(threads: 1)
    clients = Array.new(20) { client("/events?body=data:+first%0A%0A") }
    assert_equal "hello ", @server.get("/").body, "no thread is held"
    assert_equal 20, hub["held"]
    assert_equal 200, publish("number %", "/publish?times=100").status
    publish("two\nlines", "/publish?event=named")
    numbers = Array.new(100) { |number| "number #{number}" }
    clients.each do |one|
      one.read_events(102)
      assert_equal ["first", *numbers, "two\nlines"], one.data
      assert_equal "named", one.events.last.type
      assert_equal one.events[1..].map(&:id).uniq.length, 101
    end
    refute_includes clients.first.head.downcase, "highball"
    assert_equal [20, 1, 101], hub.values_at("held", "streams", "published")
    assert_includes command_output(@server, "status"), "20 responses and 0 WebSockets held"
  end

  def test_a_client_that_returns_gets_what_it_has_missed
    start("--hub-history", "5")
    one = client.read_until("the id of what came before", &:last_id)
    one.close
    publish("%", "/publish?times=3")
    one.open.read_events(3)
    assert_equal %w[0 1 2], one.data, "the id comes before the first event"
    one.close
    publish("more")
    one.open.read_events(4)
    one.close
    publish("%", "/publish?times=6")
    one.open.read_events(10)
    assert_equal %w[highball-gap expired], kinds(one)[4]
    assert_equal %w[1 2 3 4 5], one.data.drop(5)
  end

  def test_ids_of_another_process_and_of_other_programs
    start
    publish("%", "/publish?times=2")
    foreign = client("/events", "Last-Event-ID" => "00000000deadbeef-7").read_events(3)
    assert_equal [%w[highball-gap restarted], [nil, "0"], [nil, "1"]], kinds(foreign)
    others = ["x", "7", "-", "#{'9' * 400}-1", foreign.last_id.sub(/\d+\z/, "99")].map do |id|
      client("/events", "Last-Event-ID" => id)
    end
    publish("new")
    others.each { |one| assert_equal %w[new], one.read_events(1).data }
  end

  def test_several_streams_in_one_response
    start
    one = client("/events?of=a,+b")
    %w[a b c a b].each_with_index { |stream, number| publish(number.to_s, "/publish?to=#{stream}") }
    assert_equal %w[0 1 3 4], one.read_events(4).data
  end

  def test_processes_of_the_application_publish
    start
    one = client
    assert_equal "0", @server.get("/child").body
    assert_match(/\A\h{16}-\d+\n\z/, run_ruby('puts Highball.publish("ticks", "from a script")'))
    assert_equal ["from a child", "from a script"], one.read_events(2).data
    elsewhere = folder_with
    error = run_ruby("Highball.publish('ticks', 'x') rescue puts $!.message", elsewhere)
    assert_includes error, "no Highball serves #{elsewhere} as this user"
  end

  # Until these clients have to connect again, they get what the new process publishes.
  def test_clients_of_the_old_process_in_a_hot_restart
    long
    start("--hijacked-drain-timeout", "5m", "--drain-timeout", "5m", "--hub-history", "100")
    clients = Array.new(10) { client }
    publish("before")
    highball("upgrade", *@server.which, within: 60)
    late = client
    1000.times { |number| publish(number.to_s) }
    numbers = Array.new(1000, &:to_s)
    assert_equal numbers, late.read_events(1000).data
    stayed = clients.select { |each| each.stays_for(1001) }
    assert_operator stayed.length, :>, 5
    stayed.each { |each| assert_equal [stayed[0].events, 1], [each.events, each.connections] }
    assert_equal ["before", *numbers], stayed[0].data
    stayed[0].close
    publish("last")
    assert_equal ["before", *numbers, "last"], stayed[0].open.read_events(1002).data
    assert_equal 1001, hub["published"]
  end

  # On connections that are kept, and on new ones.
  def test_processes_publish_during_hot_restarts
    long
    start
    code = <<~RUBY
      require "io/wait"
      require "highball/publisher"
      publisher = Highball::Publisher.new
      count = 0
      until $stdin.wait_readable(0)
        publisher.publish("ticks", "x", nil)
        publisher.close if ARGV == ["new"]
        count += 1
      end
      puts count
    RUBY
    publishers = %w[kept new].cycle.first(6).map do |connections|
      IO.popen([*HubApp.script(code), connections], "r+", chdir: @folder, err: %i[child out])
    end
    3.times { highball("upgrade", *@server.which, within: 60) }
    publishers.each(&:close_write)
    answers = publishers.map { |publisher| publisher.read.tap { publisher.close } }
    assert_empty(answers.grep_v(/\A[1-9]\d*\n\z/))
  end

  def test_http2
    start("--http2-cleartext", "on")
    client = Http2Client.tcp(@server.port).greet
    numbers = [1, 3, 5]
    numbers.each { |number| client.send_request(number, "GET", "/events?body=data:+first%0A%0A") }
    client.read_until { numbers.all? { |number| client.part(number).body.include?("id: ") } }
    publish("over HTTP/2")
    client.read_until { numbers.all? { |number| client.part(number).body.include?("data: over HTTP/2\n\n") } }
    client.reset(1)
    wait_for("the client of a stream to have left") { hub["held"] == 2 }
  end

  def test_heartbeats_and_no_compression
    start("--hub-heartbeat", "1s", "--compress", "on")
    one = client("/events", "Accept-Encoding" => "gzip, br, zstd")
    assert_nil one.header("content-encoding")
    one.read_until("two heartbeats") { one.comments >= 2 }
    publish("x")
    assert_equal %w[x], one.read_events(1).data
  end

  def test_only_an_event_stream_of_the_application_is_held
    start
    page = @server.get("/page")
    assert_equal ["page", nil], [page.body, page["highball-stream"]]
    assert_includes @server.log, "is not held"
    assert_equal "hello ticks", @server.get("/", { "Highball-Stream" => "ticks" }).body
    head = @server.request("HEAD", "/events")
    assert_equal [200, nil], [head.status, head["highball-stream"]]
    assert_equal 0, hub ? hub["held"] : 0
  end

  def test_clients_that_leave_are_noticed
    start
    clients = Array.new(5) { client }
    assert_equal 5, hub["held"]
    clients.each(&:close)
    wait_for("none to be held") { hub["held"].zero? }
    @clients.clear
  end

  def test_the_access_log_has_the_final_figures
    log = File.join(folder_with, "access.log")
    start("--access-log", log)
    one = client
    publish("x" * 1000)
    one.read_events(1).close
    @clients.clear
    wait_for("its line") { File.exist?(log) && File.readlines(log).grep(/events/).any? }
    assert_match(%r{"GET /events HTTP/1.1" 200 1\d{3} }, File.readlines(log).grep(/events/).first)
  end

  def test_a_slow_client_is_closed_and_the_others_get_everything
    start("--hub-history", "20")
    slow, quick = Array.new(2) { client }
    big = "x" * 200_000
    60.times do |number|
      publish("#{number} #{big}")
      quick.read_events(number + 1)
    end
    assert_equal((0...60).to_a, quick.data.map(&:to_i))
    wait_for("the slow one to be closed") { hub.values_at("held", "slow_closed") == [1, 1] }
    assert_operator hub["bytes"], :<, 25 * 201_000
    slow.follow { slow.over? }
    slow.open.read_until("what is kept") { slow.events.last&.data&.start_with?("59 ") }
    assert_includes kinds(slow), %w[highball-gap expired]
  end

  def test_an_application_that_publishes_without_end
    start(workers: 2)
    clients = Array.new(10) { client("/events?of=flood") }
    other = client
    @server.get("/flood?bytes=2000")
    took = timings(50) { assert_equal "hello ", @server.get("/").body }
    assert_operator percentile(took, 0.9), :<, 0.25
    publish("beside it")
    assert_equal ["beside it"], other.read_events(1).data
    wait_for("messages") { hub["published"] > 1000 }
    clients.each { |one| one.read_events(10) }
    assert_operator hub["bytes"], :<, 64 * MIB
  end

  def test_metrics
    start("--admin", "127.0.0.1:0")
    client
    publish("x")
    report = @server.status
    address = report["admin"].first
    metrics = Net::HTTP.get(URI("#{address}/metrics"))
    assert_match(/^highball_held_responses\{app="[^"]+"\} 1$/, metrics)
    assert_match(/^highball_hub_messages_total\{app="[^"]+"\} 1$/, metrics)
  end

  private

  # Type and data of its events.
  def kinds(client) = client.events.map { |event| [event.type, event.data] }

  # What a script in the application's folder prints.
  def run_ruby(code, folder = @folder)
    IO.popen(HubApp.script(code), chdir: folder, err: %i[child out], &:read)
  end
end
