# frozen_string_literal: true

# marks: long

require_relative "../../support/open_stream"
require_relative "../../support/upgrade_test_case"

# Many answers that have left their places, during operations: answers that end in time are complete, the others are
# cut off, and no other request fails.
class StreamsInOperationsTest < UpgradeTestCase
  STREAMS = ENV["HIGHBALL_TEST_LEVEL"] == "full" ? 500 : 120
  LINES = Array.new(20) { |number| "line #{number}\n" }.join
  APP = <<~'RUBY' + CONFIG
    map("/stream") do
      run lambda { |env|
        count, kind = env["QUERY_STRING"].split(",")
        lines = Enumerator.new do |yielder|
          count.to_i.times do |number|
            sleep 0.15 if number.positive?
            sleep 0.1 until number < 10 || File.exist?("go") || count == "100000"
            yielder << "line #{number}\n"
          end
        end
        call = lambda do |stream|
          lines.each { |line| stream << line }
        ensure
          stream.close
        end
        [200, {}, kind == "call" ? call : lines]
      }
    end
  RUBY
  # Questions that another worker may repeat.
  REPEATABLE = VersionedApp::QUESTIONS.first(1)

  def setup
    super
    @folder = version(1, folder_with, APP)
    @server = serve(@folder, "--drain-timeout", "5s", workers: 2)
  end

  def test_a_restart
    operate_during_streams do
      version(2, @folder, APP)
      restart(@server)
    end
  end

  def test_a_hot_restart
    operate_during_streams(allowed: [:closed]) { upgrade(@server) } # as every connection of the old process
  end

  def test_a_refork_waits_for_streams
    short = open_streams(20)
    operate(short, []) { highball("refork", *@server.which, within: 60) }
  end

  # The worker that was to be promoted is killed.
  def test_a_refork_that_has_waited_too_long_fails
    long = open_streams(100_000)
    load = KeepAliveLoad.during(@server) do
      highball_fails("refork", *@server.which, within: 60)
      wait_for("the rest to go on") { workers(@server) == %w[serving serving] && streaming.between?(1, STREAMS - 10) }
    end
    assert_empty load.failures
    long.each(&:close)
    wait_for("no stream to be left") { streaming.zero? }
  end

  def test_a_killed_worker
    streams = open_streams(40)
    load = KeepAliveLoad.during(@server, questions: REPEATABLE) do |clients|
      let_end
      killed = @server.status["workers"].max_by { |worker| worker["streams"] }
      HighballServer.kill(killed["pid"])
      complete, cut_off = streams.map(&:whole).partition(&:last)
      assert_equal [killed["streams"], STREAMS - killed["streams"]], [cut_off.size, complete.size]
      assert_equal [LINES.lines.size * 2], complete.map { |lines, _| lines.lines.size }.uniq
      clients.more(2)
    end
    assert_empty load.failures
    wait_for("another worker") { workers(@server) == %w[serving serving] }
  end

  def test_the_end_of_the_server
    short, long = [20, 100_000].map { |count| open_streams(count, STREAMS / 2) }
    let_end
    @server.signal("TERM")
    assert_ends(short, long)
    wait_for("the server to end") { !@server.running? }
    assert_empty @server.orphans
  end

  private

  def operate_during_streams(**options, &)
    streams = [20, 100_000].map { |count| open_streams(count, STREAMS / 2) }
    operate(*streams, **options, &)
  end

  def operate(short, long, **options)
    load = KeepAliveLoad.during(@server, **options) do |clients|
      let_end
      yield
      clients.more(2)
      assert_ends(short, long)
    end
    assert_empty load.failures
    wait_for("no stream to be left") { streaming.zero? }
  end

  # Lets streams send what follows their tenth line. The long ones do not wait for that.
  def let_end = File.write(File.join(@folder, "go"), "")

  # Streams of this number of lines that have left their places. With 20 lines they end within the drain timeout, which
  # begins after `let_end`.
  def open_streams(lines, number = STREAMS)
    before = streaming
    streams = Array.new(number) { |at| OpenStream.of(@server, "/stream?#{lines},#{at.even? ? 'call' : 'each'}") }
    wait_for("all to leave") { streaming == before + number }
    streams
  end

  def assert_ends(short, long)
    short.each { |stream| assert_equal [LINES, true], stream.whole, stream.path }
    long.each do |stream|
      lines, is_complete = stream.whole
      refute is_complete
      assert_equal Array.new(lines.lines.size) { |number| "line #{number}\n" }.join, lines
    end
  end

  def streaming = @server.status["workers"].sum { |worker| worker["streams"] }
end
