# frozen_string_literal: true

ENV["MT_CPU"] ||= "5" # its tests mostly wait

require_relative "../../support/e2e_test"
require_relative "../../support/admin"
require_relative "../../support/load"

# Workers that begin no requests, or show no sign of life: the kernel reports nothing of them. They are called stuck,
# and replaced.
class UnresponsiveWorkersTest < E2ETest
  parallelize_me!

  APP = <<~'RUBY'
    WAYS = {
      "background" => -> { Thread.new { "x".crypt("$6$rounds=900000000$saltsalt") } }, # with the GVL
      "kill_threads" => -> { Thread.list.each { |thread| thread.kill unless thread == Thread.main } },
      "close_ios" => -> { ObjectSpace.each_object(IO, &:close) },
      "close_all" => -> { (3..64).each { |fd| IO.for_fd(fd).close rescue nil } },
      "deaf" => lambda {
        trap("USR2") { sleep } # in the main thread
        Process.kill(:USR2, Process.pid)
      }
    }.freeze

    run lambda { |env|
      WAYS[env["PATH_INFO"].delete_prefix("/")]&.call
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
  RUBY

  # Nothing that the server could notice but that requests are not begun.
  def test_workers_that_are_stopped_are_replaced
    concurrently(2) do |index|
      server = serve_app(workers: index + 1)
      old = server.worker_pids
      stop_processes(old)
      wait_for("an answer", within: 40) { server.get("/", within: 20).status == 200 }
      wait_for("the stopped ones to be gone", within: 40) do
        server.get("/", within: 20)
        old.none? { |pid| File.exist?("/proc/#{pid}") }
      end
      wait_for("the log") do
        server.log.match?(/does not respond: it begins no requests.*\n +doing: the process of the worker is stopped/)
      end
      assert_equal ["serving"] * (index + 1), states(server)
    end
  end

  # No request comes, so only the lack of signs of life shows it. (While the mold stands still, nothing replaces them.)
  def test_workers_that_are_stopped_without_traffic
    admin = File.join(folder_with, "admin.sock")
    server = serve_app("--admin", "unix:#{admin}", workers: 2)
    old = server.worker_pids
    mold = server.status["mold"]["pid"]
    stop_processes([mold, *old])
    wait_for("the reports to say so", within: 60) { server.status["phase"] == "stuck" }
    wait_for("each worker to be called stuck") { states(server).first(2) == %w[stuck stuck] }
    assert_equal 503, ready(admin).status
    assert_includes ready(admin).body, "stuck"
    HighballServer.kill(mold, "CONT")
    wait_for("other workers", within: 60) { (old & server.worker_pids).empty? && server.worker_pids.length == 2 }
    wait_for("them to serve") { server.status["phase"] == "serving" && ready(admin).status == 200 }
    assert_match(/or does not answer.*\n +doing: the process of the worker is stopped/, server.log)
  end

  # Its requests are served, or there are none; but a restart would have to kill it.
  def test_workers_whose_main_threads_do_not_answer
    long
    ways = %w[deaf background]
    concurrently(ways.length) do |index|
      server = serve_app(workers: 1, limit: "none")
      old = server.worker_pids
      go_wrong(server, ways[index])
      wait_for("another worker after #{ways[index]}", within: 120) { (server.worker_pids & old).empty? }
      assert_equal 200, server.get("/").status
    end
  end

  # Its requests go to the other at once.
  def test_one_of_two_workers_is_stopped
    server = serve_app(workers: 2)
    stopped = server.worker_pids.first
    stop_processes([stopped])
    outcomes = Load.during(server, clients: 2) do
      wait_for("the other worker", within: 40) do
        server.worker_pids.length == 2 && !server.worker_pids.include?(stopped)
      end
    end
    assert_equal [200], outcomes.map(&:result).uniq
    assert_operator outcomes.map(&:seconds).max, :<, 2.5
  end

  def test_ways_to_take_no_more_requests
    ways = %w[background kill_threads close_ios close_all]
    concurrently(ways.length) do |index|
      server = serve_app(workers: 1)
      old = server.worker_pids
      go_wrong(server, ways[index])
      wait_for("an answer after #{ways[index]}", within: 40) { server.get("/", within: 20).status == 200 }
      next if ways[index] == "kill_threads" # they are replaced

      wait_for("another worker after #{ways[index]}", within: 40) do
        server.get("/", within: 20)
        (server.worker_pids & old).empty?
      end
    end
  end

  private

  def serve_app(*options, workers:, limit: "3s")
    folder = folder_with("config.ru" => APP)
    server = serve(folder, *options, "--request-timeout", limit, "--drain-timeout", "3s", workers: workers)
    # A worker that is stopped before it is ready has the time of a boot.
    wait_for("all workers", within: 30) { states(server) == ["serving"] * workers }
    server
  end

  def states(server) = server.status["workers"].map { |worker| worker["state"] }

  def go_wrong(server, way)
    server.get("/#{way}", within: 5)
  rescue StandardError
    nil # it may answer, or not
  end

  def ready(admin)
    HttpConnection.unix(admin).use { |connection| connection.get("/readyz", { "Host" => "localhost" }) }
  end
end
