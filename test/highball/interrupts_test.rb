# frozen_string_literal: true

require_relative "../support/server_test_case"

# Serving threads that are killed, interrupted or stopped. No request and no thread is lost.
class InterruptsTest < ServerTestCase
  def test_a_killed_thread_ends_its_request_and_is_replaced
    serve_paths({ "/kill" => ->(_) { Thread.current.kill }, "/exit" => ->(_) { Thread.exit } })
    %w[/kill /exit /kill].each do |path|
      before = threads.first
      assert_equal %i[abort], get(path).kinds
      wait_for("another thread") { threads.first != before && threads.first.alive? }
      assert_serves
    end
  end

  def test_a_thread_killed_while_it_waits_for_room
    body = Enumerator.new { |yielder| loop { yielder << ("x" * 10_000) } }
    closed = Queue.new
    body.define_singleton_method(:close) { closed << true }
    serve_paths({ "/endless" => ->(_) { [200, {}, body] } })
    placed = place({ "PATH_INFO" => "/endless" })
    wait_for("the area to fill") { @front.written(placed) > 55_000 }
    threads.first.kill
    # The client reads nothing until the answer has ended: the answer must not wait for it.
    wait_for("close") { !closed.empty? }
    written = @front.written(placed)
    wait_for("the end") { threads.first.alive? && @front.take(placed).ended? }
    assert_operator written, :<=, 64 * 1024
    assert_serves
  end

  # A thread that yields to others still receives interrupts.
  def test_timeouts_of_a_request_that_computes_beside_others
    serve_paths({ "/compute" => lambda { |_|
      timeouts = Array.new(20) { Timeout.timeout(0.02) { loop {} } rescue $!.class } # rubocop:disable Style/RescueModifier, Style/SpecialGlobalVars
      [200, {}, timeouts.uniq.map(&:name)]
    } }, threads: 3)
    computing = place({ "PATH_INFO" => "/compute" })
    answer = wait_for("the end of it", within: 60) do
      assert_serves
      @front.take(computing).then { |taken| taken if taken.ended? }
    end
    assert_equal "Timeout::Error", answer.body
  end

  def test_timeouts_where_the_app_waits_and_where_the_server_does
    serve_paths({
                  "/pop" => ->(_) { Timeout.timeout(0.05) { Queue.new.pop } },
                  "/rescued" => lambda { |_|
                                  begin
                                    Timeout.timeout(0.05) { Queue.new.pop }
                                  rescue Timeout::Error
                                    OK
                                  end
                                },
                  "/stream" => lambda { |_|
                                 write = ->(stream) { Timeout.timeout(0.05) { loop { stream.write("x" * 10_000) } } }
                                 [200, {}, ->(stream) { write.call(stream) rescue stream.write("late") }] # rubocop:disable Style/RescueModifier
                               }
                })
    assert_equal 500, get("/pop").status
    assert_equal "ok", get("/rescued").body
    placed = place({ "PATH_INFO" => "/stream" })
    wait_for("the area to fill") { @front.written(placed) > 55_000 }
    answer = answer_to(placed)
    assert_equal ["late", true], [answer.body.delete("x"), answer.complete?]
    assert_serves
  end

  def test_an_interrupt_of_an_idle_thread_loses_no_request
    serve_paths
    assert_serves
    threads.first.raise("meant for another request")
    wait_for("the log") { log.include?("meant for another request") }
    assert_serves
    threads.first.kill
    assert_serves
  end

  # Interrupts at every moment of a request's life: each request ends, and none of them is answered twice.
  def test_interrupts_at_any_time
    serve_paths({ "/long" => lambda { |_|
                               [200, {}, Enumerator.new do |body|
                                           20.times do
                                             body << ("x" * 5000)
                                           end
                                         end]
                             } }, threads: 2)
    random = Random.new(7)
    done = false
    gunman = Thread.new do
      until done
        victim = threads.sample(random: random)
        random.rand < 0.5 ? victim.kill : victim.raise("bang")
        Thread.pass
      end
    end
    ends = Array.new(300) { |number| get(number.even? ? "/" : "/long").kinds.last }
    done = true
    gunman.join
    assert_empty ends - %i[end abort failure]
    wait_for("both threads") { threads.all?(&:alive?) }
    assert_serves
  end

  def test_stop_ends_threads_that_wait_and_lets_the_others_finish
    gate = Queue.new
    serve_paths({ "/wait" => ->(_) { [200, {}, [gate.pop]] } }, threads: 3)
    placed = place({ "PATH_INFO" => "/wait" })
    wait_for("the claim") { gate.num_waiting == 1 }
    @server.stop
    Deadline.wait("end of the idle threads") { threads.count(&:alive?) == 1 }
    gate << "finished"
    assert_equal "finished", answer_to(placed).body
    Deadline.wait("end of the last thread") { threads.none?(&:alive?) }
    @server.join
  end

  # Whenever it comes: also while the thread that tends the places is about to sleep.
  def test_stop_ends_the_thread_that_tends_the_places
    2000.times do |round|
      ring = FakeFront.new(most_threads: 2).ring
      tending = Thread.new { ring.await_shortage }
      Thread.pass while round.odd? && tending.status == "run"
      ring.stop
      assert tending.join(10), "it sleeps on, in round #{round}"
      refute tending.value
    end
  end

  def test_the_main_thread_does_not_serve
    seen = nil
    serve do
      seen = Thread.current
      OK
    end
    ask
    refute_same Thread.main, seen
    assert_equal "worker thread 1", seen.name
  end
end
