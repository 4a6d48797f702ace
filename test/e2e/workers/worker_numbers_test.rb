# frozen_string_literal: true

require_relative "../../support/restart_test_case"

# TTIN and TTOU: one worker more, and one fewer.
class WorkerNumbersTest < RestartTestCase
  def test_one_worker_more_and_one_fewer_under_load
    server = serve(version(1), workers: 2)
    load = KeepAliveLoad.during(server) do |clients|
      { "TTIN" => 3, "TTOU" => 2 }.each do |signal, count|
        server.signal(signal)
        wait_for("#{count} workers") { workers(server) == Array.new(count, "serving") }
        assert_equal count, server.status["workers_wanted"]
        clients.more(3)
      end
    end
    assert_empty load.failures
  end

  def test_never_fewer_than_one_worker
    server = serve(version(1), workers: 2)
    3.times do |sent|
      server.signal("TTOU")
      wait_for("the signal") { server.log.scan("worker count set").length == sent + 1 }
    end
    assert_equal 1, server.status["workers_wanted"]
    wait_for("one worker") { workers(server) == ["serving"] }
    assert_equal "1", answer(server)
  end

  def test_their_number_is_kept_by_a_restart
    app = version(1)
    server = serve(app)
    server.signal("TTIN")
    wait_for("two workers") { workers(server) == %w[serving serving] }
    restart(server)
    assert_equal [2, 2], generations(server)
  end
end
