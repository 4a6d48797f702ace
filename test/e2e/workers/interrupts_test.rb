# frozen_string_literal: true

# marks: few, long, debian13 (it measures how long the shortest waits take)

require_relative "../../support/e2e_test"

# Ruby's ways to wait and to be interrupted, in the threads that serve (sleep, Timeout, Thread#kill, TERM),
# and CPU-bound workers beside idle ones.
class InterruptsTest < E2ETest
  def test_sleep_timeout_and_a_killed_thread_end_as_ruby_programmers_expect
    server = serve("probe", threads: 3)
    assert_equal "slept\n", server.get("/sleep?ms=100").body
    assert_equal "timed out\n", server.get("/timeout?ms=100").body
    5.times { assert_includes [500, 502], server.get("/kill-thread").status }
    # All three threads are still alive: three sleeps run in parallel.
    began = Deadline.now
    concurrently(3) { server.get("/sleep?ms=500") }
    assert_operator Deadline.now - began, :<, 1.4
  end

  def test_a_killed_thread_ends_no_other_request
    server = serve("probe", threads: 3)
    answers = concurrently(2) do |client|
      client.zero? ? server.get("/sleep?ms=500").status : server.get("/kill-thread").status
    end
    assert_equal 200, answers.first
  end

  %w[/sleep?ms=700 /timeout?ms=700 /cpu?ms=700].each do |target|
    define_method("test_term_during_#{target[/\w+/]}_lets_it_end") do
      server = serve("probe")
      server.connect do |connection|
        begin_request(server, connection, target)
        server.signal("TERM")
        assert_equal 200, connection.read_response.status
        assert_predicate server.wait, :success?
      end
    end
  end

  def test_a_request_that_never_ends_is_cut_off_after_the_drain_time
    server = serve("probe", "--drain-timeout", "500ms")
    server.connect do |connection|
      begin_request(server, connection, "/sleep?ms=3600000")
      began = Deadline.now
      server.signal("TERM")
      begin
        assert_includes [nil, 502, 503], connection.read_response&.status
      rescue Errno::ECONNRESET
        nil # cut off
      end
      server.wait
      assert_operator Deadline.now - began, :<, 10
    end
  end

  def test_no_request_waits_for_a_busy_worker_while_another_is_idle
    server = serve("probe", workers: 4, threads: 3)
    server.connect do |busy|
      begin_request(server, busy, "/cpu?ms=4000")
      slowest = timings(300) { server.get("/") }.last
      assert_nil busy.socket.wait_readable(0), "the busy request ended too early to show anything"
      assert_operator slowest, :<, 0.5
      assert_equal 200, busy.read_response.status
    end
  end

  def test_a_worker_with_a_free_thread_serves_beside_a_sleeping_request
    server = serve("probe", workers: 1, threads: 2)
    server.connect do |sleeping|
      begin_request(server, sleeping, "/sleep?ms=3000")
      assert_operator timings(20) { server.get("/") }.last, :<, 1
    end
  end

  # With Ruby's time slice, each of them would wait for 100 ms.
  def test_short_requests_get_their_turns_beside_a_cpu_bound_one
    server = serve("probe", workers: 1, threads: 3)
    server.connect do |busy|
      begin_request(server, busy, "/cpu?ms=4000")
      answered = 0
      server.connect do |short|
        until busy.socket.wait_readable(0)
          short.send_request("GET", "/")
          assert_equal 200, short.read_response.status
          answered += 1
        end
      end
      assert_equal 200, busy.read_response.status
      assert_operator answered, :>, 60
    end
  end

  private

  # Sends the request and waits until a worker has started it.
  def begin_request(server, connection, target)
    connection.send_request("GET", target)
    path = target[/[^?]+/]
    wait_for("begin of #{target}") { server.log.include?("probe begins #{path}\n") }
  end
end
