# frozen_string_literal: true

# marks: root

require_relative "../../support/e2e_test"
require_relative "../../support/load"

# Stopping: every accepted request is answered.
class ShutdownTest < E2ETest
  ENDLESS = "/download?bytes=1000000000&piece=1000&pause_ms=5"

  %w[TERM INT].each do |signal|
    define_method("test_#{signal.downcase}_under_load_answers_every_accepted_request") do
      server = serve("probe", workers: 2, threads: 2)
      outcomes = Load.during(server, clients: 10, target: "/sleep?ms=10") do
        server.signal(signal)
        assert_equal 0, server.wait.exitstatus
      end
      # A connection may be closed between two requests; a started answer may not break off.
      results = outcomes.map(&:result).tally
      assert_empty results.keys - [200, "closed", "Errno::ECONNRESET", "Errno::EPIPE"], results
      # Each client sees the end once, and again where it has connected just before the server stopped listening.
      assert_operator outcomes.length - results.fetch(200), :<=, 20
    end
  end

  def test_requests_in_the_queue_are_answered_too
    server = serve("probe", workers: 1, threads: 1)
    connections = Array.new(10) { server.connect }
    connections.each { |connection| connection.send_request("GET", "/sleep?ms=50") }
    wait_for("the first to begin") { server.log.include?("probe begins /sleep") }
    server.signal("TERM")
    answers = connections.map(&:read_response)
    assert_equal [200], answers.map { |answer| answer&.status }.uniq
    # Requests whose answers had not started when the drain started.
    assert_equal ["close"], answers.drop(1).map { |answer| answer["connection"] }.uniq
    assert_predicate server.wait, :success?
  ensure
    connections&.each(&:close)
  end

  # As Heroku does.
  def test_term_to_every_process_answers_requests_in_the_queue_too
    server = serve("probe", workers: 2, threads: 1)
    connections = Array.new(10) { server.connect }
    connections.each { |connection| connection.send_request("GET", "/sleep?ms=50") }
    wait_for("the first to begin") { server.log.include?("probe begins /sleep") }
    [*server.worker_pids, server.mold_pid, server.pid].each { |pid| HighballServer.kill(pid, "TERM") }
    assert_equal([200], connections.map { |connection| connection.read_response&.status }.uniq)
    assert_predicate server.wait, :success?
  ensure
    connections&.each(&:close)
  end

  def test_a_transfer_in_flight_is_finished
    server = serve("probe")
    server.connect do |connection|
      connection.send_request("GET", "/download?bytes=30000000")
      # The first bytes are there; the rest is far more than what fits into any buffer on the way.
      connection.socket.wait_readable(10)
      server.signal("TERM")
      assert_equal 30_000_000, connection.read_response.body.bytesize
    end
    assert_predicate server.wait, :success?
  end

  def test_idle_connections_do_not_hold_it_up
    server = serve("probe")
    idle = Array.new(5) { server.connect.tap { |connection| connection.get("/") } }
    began = Deadline.now
    assert_predicate server.stop, :success?
    assert_operator Deadline.now - began, :<, 5
    idle.each { |connection| assert_predicate connection, :ended? }
  ensure
    idle&.each(&:close)
  end

  def test_new_connections_are_refused_while_it_drains
    server = serve("probe")
    server.connect do |connection|
      connection.send_request("GET", "/sleep?ms=1500")
      wait_for("begin of the request") { server.log.include?("probe begins /sleep") }
      server.signal("TERM")
      wait_for("refusal of new connections", within: 1) do
        server.connect { |fresh| fresh.get("/").nil? }
      rescue SystemCallError
        true
      end
      assert_equal 200, connection.read_response.status
    end
  end

  # --- what the last lines of the log say of the requests

  def test_the_log_says_that_every_request_was_answered
    server = serve("probe")
    stopping_during(server, "/sleep?ms=300") { |connection| assert_equal 200, connection.read_response.status }
    assert_predicate server.wait, :success?
    assert_includes server.log, "stopped; every request was answered"
  end

  def test_the_log_says_that_a_request_did_not_arrive_in_time
    server = serve("probe", "--body-timeout", "3s")
    server.connect do |connection|
      connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nbegun")
      stop_accepting(server)
      assert_equal 408, connection.read_response.status
    end
    assert_unanswered(server, "not_received_in_time=1")
  end

  def test_the_log_says_that_a_client_has_left
    server = serve("probe")
    stopping_during(server, ENDLESS, &:close)
    assert_unanswered(server, "clients_left=1")
  end

  def test_the_log_says_that_an_answer_was_cut_off
    server = serve("probe")
    stopping_during(server, ENDLESS) do |connection|
      server.worker_pids.each { |worker| HighballServer.kill(worker) }
      assert_raises(EOFError, Errno::ECONNRESET) { connection.read_response }
    end
    assert_unanswered(server, "answers_cut_off=1")
  end

  def test_the_log_says_that_the_time_was_over
    server = serve("probe", "--drain-timeout", "300ms")
    stopping_during(server, "/sleep?ms=60000") { assert_equal 1, server.wait.exitstatus }
    assert_unanswered(server, "unfinished=1")
    assert_includes server.log, "stopped; Highball killed the processes that did not end in time"
  end

  def test_at_exit_runs_in_the_workers
    app = folder_with("config.ru" => <<~RUBY)
      pid = nil
      run(lambda do |env|
        pid ||= at_exit { File.write(File.join(__dir__, "goodbye"), Process.pid.to_s) } && Process.pid
        [200, { "content-type" => "text/plain" }, [pid.to_s]]
      end)
    RUBY
    server = serve(app)
    pid = server.get("/").body
    server.stop
    assert_equal pid, File.read(File.join(app, "goodbye"))
  end

  def test_in_development_int_stops_without_grace
    server = serve("probe", environment: "development")
    server.connect do |connection|
      connection.send_request("GET", "/sleep?ms=60000")
      wait_for("begin of the request") { server.log.include?("probe begins /sleep") }
      server.signal("INT")
      server.signal("INT") if server.running?
      server.wait(within: 10)
    end
  end

  def test_the_pidfile_and_the_socket_are_gone_afterwards
    folder = folder_with
    server = serve("probe", "--pidfile", "#{folder}/app.pid", bind: "#{folder}/app.sock")
    assert_equal server.pid, File.read("#{folder}/app.pid").to_i
    server.stop
    assert_empty Dir.children(folder)
  end

  private

  # Runs the block with the connection of a request that was begun when the server was to stop.
  def stopping_during(server, target)
    server.connect do |connection|
      connection.send_request("GET", target)
      wait_for("begin of the request") { server.status["workers"].sum { |worker| worker["in_flight"] } == 1 }
      stop_accepting(server)
      yield connection
    end
  end

  def stop_accepting(server)
    server.signal("TERM")
    wait_for("refusal of new connections") do
      server.stranger.close
    rescue Errno::ECONNREFUSED, Errno::ECONNRESET # reset: it waited in the socket that is closed
      true
    end
  end

  def assert_unanswered(server, fact)
    server.wait
    log = server.log
    line = log[/some requests got no complete answer.*/]
    assert_equal "some requests got no complete answer while the server was stopping #{fact}", line, log
    refute_includes log, "every request was answered"
  end
end
