# frozen_string_literal: true

require_relative "../../support/refork_test_case"

# Reforks that Highball begins automatically, as measurements of memory show that they pay.
class AutoReforkTest < ReforkTestCase
  # Each worker fills 80 MiB with its first request.
  FILLING = <<~RUBY.freeze
    KEPT = {}
    use(Class.new do
      def initialize(app) = @app = app

      def call(env)
        KEPT[:memory] ||= "x" * (80 << 20)
        KEPT[:more] ||= %s
        @app.call(env)
      end
    end)
    #{CONFIG}
  RUBY

  def test_workers_that_have_much_of_their_own_are_forked_again
    server = serve(version(1, folder_with, format(FILLING, "1")), workers: 3)
    load = KeepAliveLoad.during(server) do
      refork = wait_for("a refork", within: 120) { server.status["refork"]&.then { |it| it if it["state"] == "done" } }
      assert_match(/refork_after = auto: each of 3 workers has \d+ MiB that it does not share/, refork["asked_by"])
      wait_for("its outcome", within: 120) { server.log.include?("memory of the application before and after") }
    end
    assert_empty load.failures
    before, after = server.log.match(/before_mib=(\d+) after_mib=(\d+)/).captures.map(&:to_i)
    assert_operator before - after, :>, 100
    assert_whole(server, 3)
    refute_match(/WARN.*refork/, server.log)
  end

  # A refork takes one more worker and a second mold for a while.
  def test_a_budget_without_room_for_a_second_mold_is_kept
    server = serve(version(1, folder_with, format(FILLING, "1")), "--memory-budget", "350m", workers: 3)
    load = KeepAliveLoad.during(server) do
      wait_for("the reason", within: 120) { server.log.include?("not enough free memory for a second mold") }
    end
    assert_empty load.failures
    assert_nil server.status["refork"]
    assert_whole(server, 3)
  end

  # What a request has opened, and keeps, would be shared by all workers.
  def test_an_application_that_keeps_a_connection_is_left_as_it_is
    server = serve(version(1, folder_with, format(FILLING, "IO.pipe")), workers: 3)
    mold = server.mold_pid
    load = KeepAliveLoad.during(server) do |clients|
      wait_for("the refusal", within: 120) { server.status["no_refork"] }
      clients.more(5)
    end
    assert_empty load.failures
    assert_match(/keeps a connection open/, server.status["no_refork"])
    assert_match(/INFO.*no automatic reforks of this version/, server.log)
    assert_equal mold, server.mold_pid
    assert_whole(server, 3)
    refork(server) # those who ask for one decide
  end

  # Workers that are forked from it would all go on from the same number. (lasting_state_test.rb has more.)
  def test_an_application_that_counts_is_left_as_it_is
    very_long
    counting = format(FILLING, "1").sub("@app.call", "$count = $count.to_i + 1\n    @app.call")
    server = serve(version(1, folder_with, counting), workers: 3)
    mold = server.mold_pid
    load = KeepAliveLoad.during(server) { wait_for("the refusal", within: 120) { server.status["no_refork"] } }
    assert_empty load.failures
    assert_match(/its requests have stored something in \$count that may belong to one/, server.status["no_refork"])
    assert_equal mold, server.mold_pid
    assert_whole(server, 3)
  end

  # Each worker has its own, as after any fork. (Also in lasting_state_test.rb.)
  def test_what_hooks_set_after_the_fork_does_not_matter
    very_long
    hook = "Highball.after_fork { |number| $worker = number }\n"
    server = serve(version(1, folder_with, hook + format(FILLING, "$worker.to_s")), workers: 3)
    KeepAliveLoad.during(server) do
      wait_for("a refork", within: 120) { server.status.dig("refork", "state") == "done" }
    end
    assert_nil server.status["no_refork"]
  end

  def test_a_thread_of_the_application_is_reason_enough_not_to_begin
    server = serve(version(1, folder_with, format(FILLING, "Thread.new { sleep }")), workers: 3)
    before = [server.mold_pid, *server.worker_pids]
    KeepAliveLoad.during(server) { wait_for("the refusal", within: 120) { server.status["no_refork"] } }
    assert_match(/a thread of the application runs/, server.status["no_refork"])
    assert_equal before, [server.mold_pid, *server.worker_pids]
  end
end
