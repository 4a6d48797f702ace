# frozen_string_literal: true

require "fileutils"
require_relative "../../support/checkpoints"
require_relative "../../support/e2e_test"
require_relative "../../support/keep_alive_load"
require_relative "../../support/open_stream"

# Where a large application starts, the first worker is forked before the heap is laid out, and serves meanwhile. Then
# another one takes its place.
class EarlyWorkerTest < E2ETest
  STEP = "mold.lay_out_heap"
  WORKERS = 2
  APP = <<~'RUBY'
    KEPT = Array.new(150_000) { Object.new }
    disabled = -> { GC.disable.tap { |was| GC.enable unless was } }
    GO = File.join(__dir__, "go")
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/taken"
        socket = env["rack.hijack"].call
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        Thread.new { while (line = socket.gets) do socket.write(line) end }
      when "/stream"
        body = lambda do |stream|
          stream.write("begun\n")
          sleep 0.01 until File.exist?(GO)
          stream.write("over\n")
          stream.close
        end
        return [200, { "content-type" => "text/plain" }, body]
      end
      [200, { "x-version" => "1" }, ["#{Process.pid} #{disabled.call ? 'paused' : 'collects'}"]]
    end)
  RUBY

  QUESTION = Question.new("GET", "/") { |answer| ["collects", answer.body.split.last] }

  def setup
    super
    @checkpoints = Checkpoints.new(OwnProcesses.let_use(folder_with))
    @checkpoints.ask(STEP)
    @app = folder_with("config.ru" => APP)
    @server = serve(@app, workers: WORKERS, env: @checkpoints.environment)
    @checkpoints.wait_until_reached(STEP)
  end

  # It collects garbage after a moment, and its replacement at once.
  def test_it_serves_until_another_one_does
    assert_equal [1], numbers_and_pids.keys
    wait_for("the collector") { @server.get("/").body.end_with?("collects") }
    load = KeepAliveLoad.during(@server, clients: 4, questions: [QUESTION]) do
      @checkpoints.release(STEP)
      wait_for_others
    end
    assert_empty load.failures
    assert_equal 0, @server.log.scan("replacing the worker").length
  end

  # It would end with it.
  def test_a_connection_that_the_application_has_taken_over_keeps_it
    @server.connect do |connection|
      connection.write("GET /taken HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
      assert_equal 101, connection.read_response.status
      assert_stays
      connection.write("still there\n")
      assert_equal "still there\n", connection.read_bytes(12)
    end
  end

  def test_a_stream_keeps_it
    stream = OpenStream.of(@server, "/stream")
    assert_equal "begun\n", stream.first
    wait_for("the stream") { @server.status["workers"].first["streams"] == 1 }
    assert_stays
    FileUtils.touch(File.join(@app, "go"))
    assert_equal ["over\n", true], stream.rest
  end

  def test_it_may_become_a_mold
    asked = Thread.new { highball("refork", *@server.which, within: 60) }
    wait_for("the refork") { @server.status["refork"] }
    @checkpoints.release(STEP)
    assert_includes asked.value, "all workers are forked from former worker 1"
    wait_for("an end") { @server.settled? }
    assert_equal 200, @server.get("/").status
  end

  def test_a_restart_takes_its_place_as_well
    asked = Thread.new { highball("restart", *@server.which, within: 60) }
    wait_for("the restart") { @server.status["restarts"].any? }
    @checkpoints.release(STEP)
    asked.join
    wait_for("an end") { @server.settled? }
    assert_equal [2], @server.status["workers"].map { |worker| worker["generation"] }.uniq
  end

  def test_its_death_is_no_end
    HighballServer.kill(first_pid)
    @checkpoints.release(STEP)
    wait_for_others
    assert_equal 200, @server.get("/").status
  end

  def test_the_death_of_the_mold_is_no_end
    HighballServer.kill(@server.mold_pid)
    @checkpoints.release(STEP)
    wait_for("all workers") { @server.settled? && numbers_and_pids.size == WORKERS }
    assert_equal 200, @server.get("/").status
  end

  private

  def numbers_and_pids
    serving = @server.status["workers"].select { |worker| worker["state"] == "serving" }
    serving.to_h { |worker| worker.values_at("worker", "pid") }
  end

  def first_pid = numbers_and_pids.fetch(1)

  def wait_for_others
    wait_for("other workers") { @server.complete? }
    assert_equal WORKERS, numbers_and_pids.size
  end

  def assert_stays
    @checkpoints.release(STEP)
    wait_for("all workers") { @server.settled? && numbers_and_pids.size == WORKERS }
    sleep 0.5 # nothing that could be waited for happens
    assert_equal [1, 2], numbers_and_pids.keys
  end
end
