# frozen_string_literal: true

require_relative "../../support/refork_test_case"
require_relative "../../support/load"

# A mold from which nothing is to be forked ends, and boots again when a worker is wanted.
class RestingMoldTest < ReforkTestCase
  RESTS = ["--rest-mold-after", "300ms"].freeze

  # From then on it stays.
  def test_the_mold_of_a_single_worker_ends_and_boots_when_the_worker_has_died
    server = serve_resting
    assert_match(/mold\s+none: it boots when another worker is needed/, status_text(server))
    worker = server.worker_pids.first
    HighballServer.kill(worker)
    assert_equal [200], concurrently(10) { server.get("/", within: 30).status }.uniq
    refute_includes server.worker_pids, worker
    mold = server.mold_pid
    HighballServer.kill(server.worker_pids.first)
    assert_equal 200, server.get("/", within: 30).status
    assert_equal mold, server.mold_pid
    refute_match(/the mold died/, server.log)
  end

  def test_a_restart_replaces_a_version_whose_mold_rests
    app = version(1)
    server = serve_resting(app)
    version(2, app)
    load = KeepAliveLoad.during(server) do |clients|
      server.signal("USR1")
      wait_for("the new version", within: 30) { server.status["generation"] == 2 }
      clients.more(3)
    end
    assert_empty load.failures
    wait_until_it_rests(server)
  end

  # Nothing boots in its place: in the folder is what does not boot.
  def test_a_failed_restart_leaves_the_mold_at_rest
    app = version(1)
    server = serve_resting(app)
    version(2, app, "raise 'broken'")
    server.signal("USR1")
    wait_for("the failure", within: 30) { server.status["restarts"].last&.fetch("state") == "failed" }
    assert_equal [nil, true], server.status.values_at("mold", "mold_rests")
    assert_equal 200, server.get("/").status
  end

  def test_a_refork_that_is_asked_for_boots_the_mold
    server = serve_resting
    load = KeepAliveLoad.during(server) { refork(server) }
    assert_empty load.failures
    assert_equal "booted", server.status.dig("mold", "state")
  end

  def test_a_worker_that_is_replaced_serves_until_another_does
    server = serve_resting
    worker = server.worker_pids.first
    load = KeepAliveLoad.during(server) do
      Process.kill("TERM", worker)
      wait_for("another worker", within: 30) { server.worker_pids.any? && !server.worker_pids.include?(worker) }
    end
    assert_empty load.failures
  end

  def test_a_mold_that_has_several_workers_stays
    server = serve(version(1), *RESTS, workers: 1)
    wait_until_it_rests(server)
    server.signal("TTIN")
    wait_for("a second worker", within: 30) { server.worker_pids.length == 2 && server.mold_pid }
    mold = server.mold_pid
    HighballServer.kill(server.worker_pids.first)
    wait_for("another in its place", within: 30) { workers(server) == %w[serving serving] }
    assert_equal mold, server.mold_pid
  end

  def test_an_application_that_does_not_boot_any_more_is_tried_again
    app = version(1)
    server = serve_resting(app)
    version(2, app, "raise 'broken'")
    HighballServer.kill(server.worker_pids.first)
    wait_for("the failure", within: 30) { server.log.include?("broken") }
    version(1, app)
    wait_for("an answer", within: 60) { server.get("/", within: 60).status == 200 }
  end

  private

  def serve_resting(app = version(1))
    server = serve(app, *RESTS, workers: 1)
    wait_until_it_rests(server)
    assert_equal 200, server.get("/").status
    server
  end

  def wait_until_it_rests(server)
    wait_for("the mold to end", within: 30) do
      status = server.status
      status["mold_rests"] && status["mold"].nil? && server.settled?
    end
  end

  def status_text(server) = HighballServer.run("status", *server.which).first
end
