# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/slow_service"

# `threads = "3..32"`: a worker gets more threads where requests queue while all of them wait for something else, keeps
# a few places for other requests, and ends idle threads.
class GrowingThreadsTest < E2ETest
  APP = <<~'RUBY'
    require "socket"
    wait = -> { TCPSocket.open("127.0.0.1", ENV.fetch("SERVICE").to_i, &:read) }
    run lambda { |env|
      text = case env["PATH_INFO"]
             when %r{\A/wait} then wait.call
             when "/declare" then env["puma.mark_as_io_bound"].call.inspect + wait.call
             when "/pool" then ENV["RAILS_MAX_THREADS"].inspect
             when "/compute"
               finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.03
               nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
               "computed"
             else "hello"
             end
      [200, { "content-type" => "text/plain" }, [text]]
    }
  RUBY
  # With as many objects as make it a large application in each Ruby: its first worker is forked early, and replaced.
  POOL = <<~RUBY
    require "active_record"
    OBJECTS = Array.new(100_000) { Object.new }
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:", pool: 6)
    ActiveRecord::Base.connection_pool.with_connection { nil }
  RUBY

  def setup
    super
    @service = SlowService.new
    @clients = []
  end

  def teardown
    @service.close
    @clients.each { |client| client.join(60) }
    super
  end

  def test_requests_that_wait_leave_room_for_others
    server = serve_app("3..32")
    assert_equal [3, "demand"], threads(server)
    clients(server, "/wait/%d", 120)
    wait_for("all threads but the last ones to wait") { @service.waiting == 28 }
    wait_for("one for other requests") { threads(server) == [29, "demand"] }
    took = timings(100) { assert_equal "hello", server.get("/").body }
    assert_operator percentile(took, 0.5), :<, 0.5, "others wait behind the waiting requests"
    assert_equal 28, @service.waiting
    @service.release
    assert_equal ["answer"] * 120, answers
    wait_for("idle threads to end", within: 120) { threads(server).first == 3 }
    assert_equal "hello", server.get("/").body
  end

  def test_requests_that_compute_get_no_more_threads
    server = serve_app("2..32")
    until_at = Deadline.now + 4
    concurrently(8) do
      assert_equal "computed", server.get("/compute").body while Deadline.now < until_at
    end
    most, kept_by = threads(server)
    assert_operator most, :<=, 3, "computing has started threads"
    assert_includes %w[computing demand], kept_by
  end

  def test_a_fixed_number_is_fixed
    server = serve_app("3")
    clients(server, "/wait", 12)
    wait_for("all threads to wait") { @service.waiting == 3 }
    assert_equal [3, nil], threads(server)
    @service.release
    assert_equal ["answer"] * 12, answers
    assert_equal [3, nil], threads(server)
  end

  def test_a_request_may_announce_that_it_waits
    server = serve_app("1..4")
    clients(server, "/declare", 1)
    wait_for("the request to wait") { @service.waiting == 1 }
    assert_equal 2, threads(server).first
    assert_equal "hello", server.get("/").body
    @service.release
    assert_equal ["nilanswer"], answers
  end

  def test_a_killed_worker_takes_its_places_with_it
    server = serve_app("2..16")
    clients(server, "/wait/%d", 40)
    wait_for("the worker to grow") { @service.waiting >= 14 }
    HighballServer.kill(server.worker_pids.first)
    wait_for("another worker that grows") { server.worker_pids.any? && threads(server).first >= 14 }
    assert_equal "hello", server.get("/").body
    @service.release
    assert_equal ["answer"] * 40, answers
    wait_for("no request in flight") { server.status["workers"].sum { |worker| worker["in_flight"] }.zero? }
    assert_equal "hello", server.get("/").body
  end

  def test_restarts_and_reforks_of_grown_workers_lose_no_request
    server = serve_app("2..16", "--refork-after", "off")
    %w[restart refork].each do |order|
      @service.hold
      clients(server, "/wait/%d", 30)
      wait_for("the worker to grow") { @service.waiting >= 14 }
      ordered = Thread.new { command_output(server, order) }
      wait_for("the old worker to get no more requests") { server.status["workers"].length > 1 }
      assert_equal "hello", server.get("/").body
      @service.release
      assert_equal ["answer"] * 30, answers
      ordered.value
      wait_for("one worker") { server.settled? }
      assert_equal "hello", server.get("/").body
    end
  end

  def test_a_pool_of_connections_limits_them
    server = serve_app("3..32", files: { "config.ru" => POOL + APP }, complete: true)
    clients(server, "/wait/%d", 20)
    wait_for("the worker to have as many threads as its pool allows") { threads(server) == [4, "pool"] }
    assert_equal 4, @service.waiting
    assert_equal 1, server.log.scan("the worker gets no more threads: a pool has no connections for them").length
    @service.release
    assert_equal ["answer"] * 20, answers
  end

  def test_the_pool_of_rails_has_connections_for_the_range_and_two_more
    assert_equal '"34"', serve_app("3..32").get("/pool").body
    assert_equal '"34"', serve_app(nil).get("/pool").body
    assert_equal '"7"', serve_app("3..32", env: { "RAILS_MAX_THREADS" => "7" }).get("/pool").body
    assert_equal "nil", serve_app("3").get("/pool").body
  end

  def test_puma_files
    server = serve_app(nil, files: { "config.ru" => APP, "config/puma.rb" => "threads 3, 5\nmax_io_threads 8\n" })
    worker = server.status["workers"].first
    assert_equal [3, 3, 13], worker.values_at("threads", "threads_least", "threads_most")
  end

  def test_ranges_that_are_none
    { "32..3" => "begins above its end: write `3..32`", "0..5" => "`0` is not a whole number from 1 to 256",
      "a..b" => "`a` is not a whole number from 1 to 256" }.each do |range, problem|
      output, ended = HighballServer.run("serve", "-t", range, folder_with("config.ru" => APP))
      refute_predicate ended, :success?
      assert_includes output, problem
    end
  end

  private

  def serve_app(threads, *options, files: { "config.ru" => APP }, env: {}, **settings)
    folder = folder_with(files)
    command = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production", "-w", "1",
               *(["-t", threads] if threads), *options, folder]
    serve(folder, command: command, env: { "SERVICE" => @service.port.to_s, **env }, **settings)
  end

  # Sends requests in the background.
  def clients(server, path, count)
    @clients = Array.new(count) do |number|
      Thread.new { server.request("GET", format(path, number), within: 120).body }
    end
    @clients.each { |client| client.report_on_exception = false }
  end

  def answers = @clients.map(&:value)

  # The number of threads of the only worker, and what keeps it from growing.
  def threads(server) = server.status["workers"].last.values_at("threads", "threads_kept_by")
end
