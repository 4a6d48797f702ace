# frozen_string_literal: true

require_relative "../../support/e2e_test"

# PWR: where the threads of all workers are, in the log.
class ThreadDumpTest < E2ETest
  parallelize_me!

  APP = <<~'RUBY'
    GO = File.join(__dir__, "go")
    def wait_for_a_file = (sleep 0.02 until File.exist?(GO))

    run lambda { |env|
      case env["PATH_INFO"]
      when "/wait" then wait_for_a_file
      when "/background" then Thread.new { wait_for_a_file }.name = "feed of \e[2J news"
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def test_requests_and_other_threads_and_stopped_workers
    server, folder = serve_app(workers: 2)
    stopped = Integer(server.get("/background").body)
    other = (server.worker_pids - [stopped]).first
    dump(server)
    where = /a thread worker=\d+ pid=#{stopped} thread="?feed of [^\n]*news"? doing="it (?:sleeps|runs)/
    assert_match(/#{where}[^\n]*(?:\n +[^\n]*)*wait_for_a_file/, server.log)
    refute_includes server.log, "\e[2J"
    stop_processes([stopped])
    client = server.connect.tap { |connection| connection.send_request("GET", "/wait") }
    wait_for("the request to be begun") { server.status["workers"].sum { |worker| worker["in_flight"] } == 1 }
    wait_for("a dump that has it") { dump(server).match?(/pid=#{other} thread="worker \d+ thread \d+"/) }
    assert_match(/pid=#{stopped}\s+doing[:=][^\n]*(is stopped|does not answer)/, server.log)
    HighballServer.kill(stopped, "CONT")
    FileUtils.touch(File.join(folder, "go"))
    assert_equal 200, client.read_response.status
  ensure
    HighballServer.kill(stopped, "CONT") if stopped
    client&.close
  end

  # A signal that comes again and again makes no more than one dump at a time, and costs no request.
  def test_one_at_a_time
    server, = serve_app(workers: 1)
    before = dumps(server)
    20.times { HighballServer.kill(server.pid, "PWR") }
    wait_for("the dump") { ends(server) > before }
    wait_for("the end of each") { dumps(server) == ends(server) }
    assert_operator dumps(server) - before, :<=, 5
    assert_equal 200, server.get("/").status
    assert_equal 1, server.worker_pids.length
  end

  private

  def serve_app(workers:)
    folder = folder_with("config.ru" => APP)
    [serve(folder, workers: workers, threads: 2), folder]
  end

  # Has the threads dumped, and returns what was logged since.
  def dump(server)
    bytes = server.log.length
    before = ends(server)
    HighballServer.kill(server.pid, "PWR")
    wait_for("the dump") { ends(server) > before }
    server.log[bytes..]
  end

  def dumps(server) = server.log.scan("thread dump:").length

  def ends(server) = server.log.scan("end of the thread dump").length
end
