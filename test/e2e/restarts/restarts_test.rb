# frozen_string_literal: true

# marks: root

require_relative "../../support/restart_test_case"

# Rolling restarts: a new version replaces the old one. (soak_test.rb shows that clients do not notice.)
class RestartsTest < RestartTestCase
  def test_by_signal_and_by_file
    app = version(1)
    server = serve(app)
    version(2, app)
    server.signal("USR1")
    wait_for("version 2") { answer(server) == "2" }
    version(3, app)
    FileUtils.mkdir_p(File.join(app, "tmp"))
    FileUtils.touch(File.join(app, "tmp/restart.txt"))
    wait_for("version 3") { answer(server) == "3" }
    asked_by = server.status["restarts"].map { |one| one["asked_by"] }
    assert_equal ["USR1", "tmp/restart.txt"], asked_by
  end

  def test_by_each_change_while_there_is_always_restart
    app = version(1)
    server = serve(app)
    FileUtils.mkdir_p(File.join(app, "tmp"))
    FileUtils.touch(File.join(app, "tmp/always_restart.txt"))
    # A new file causes a restart, too: there may have been changes before it.
    (2..4).each do |number|
      wait_for("generation #{number}", within: 30) { generations(server) == [number] && stage(server) == "done" }
      version(number, app, "# version #{number}\n#{CONFIG}")
    end
    wait_for("version 4", within: 30) { answer(server) == "4" }
    assert_equal ["tmp/always_restart.txt"], server.status["restarts"].map { |one| one["asked_by"] }.uniq
  end

  def test_one_worker_more_than_usual_at_most_and_never_one_less_that_serves
    app = version(1)
    server = serve(app, workers: 3)
    # The worker after the canary waits, so that the test can look at the state at that point.
    version(2, app, <<~RUBY)
      Highball.after_fork { |number| sleep 0.01 until number == 4 || File.exist?(File.join(__dir__, "go")) }
      #{CONFIG}
    RUBY
    restarting = Thread.new { restart(server) }
    wait_for("the worker after the canary") { generations(server).include?(2) && starting?(server) }
    assert_equal %w[serving serving serving starting], workers(server).sort
    let_go(app)
    until restarting.join(0.001)
      states = workers(server)
      assert_operator states.length, :<=, 4
      assert_operator states.count("serving"), :>=, 3
    end
    assert_equal 2, restarting.value
  end

  # The first request of a worker takes longer, so clients never have it.
  def test_each_new_worker_is_warmed_up_before_clients_reach_it
    server = serve(folder_with("config.ru" => <<~'RUBY'), "--warm-up", "/one", "--warm-up", "/two", workers: 2)
      SEEN = []
      run lambda { |env|
        SEEN << env["PATH_INFO"]
        sleep 0.2 if SEEN.last == "/both"
        [200, {}, ["#{Process.pid} #{SEEN.first(3).join(' ')}"]]
      }
    RUBY
    restart(server)
    answers = Array.new(4) { Thread.new { server.get("/both").body } }.map(&:value)
    assert_equal server.worker_pids.sort, answers.map(&:to_i).uniq.sort
    assert_equal ["/ /one /two"], answers.map { |answer| answer.split(" ", 2).last }.uniq
  end

  # --- during other operations

  def test_a_restart_that_is_asked_for_during_another_comes_after_it
    app = version(1)
    server = serve(app)
    slow(app, 2)
    first = Thread.new { restart(server) }
    wait_for("the first restart") { stage(server) == "booting" }
    version(3, app)
    later = Array.new(2) { Thread.new { restart(server) } }
    wait_for("the second restart") { stage(server) == "queued" }
    let_go(app)
    # Two waiting requests for a restart cause one.
    assert_equal [2, 3, 3], [first, *later].map(&:value)
    assert_equal "3", answer(server)
  end

  def test_a_request_that_takes_long_is_finished_by_its_worker
    with_a_request_in_flight do |server, app, connection|
      version(2, app)
      restart(server)
      assert_equal "2", answer(server)
      let_go(app)
      assert_equal "1 ", connection.read_response.body
      # The next request on the same connection goes to the current version.
      assert_equal "2 ", connection.get("/").body
    end
  end

  def test_an_idle_connection_stays_open
    app = version(1)
    server = serve(app)
    server.connect do |connection|
      assert_equal "1 ", connection.get("/").body
      version(2, app)
      restart(server)
      assert_equal "2 ", connection.get("/").body
    end
  end

  def test_a_new_worker_that_is_sent_term_is_replaced_by_another_new_one
    app = version(1)
    server = serve(app, workers: 2)
    version(2, app, <<~RUBY)
      Highball.after_fork { |number| sleep 0.01 until number == 3 || File.exist?(File.join(__dir__, "go")) }
      #{CONFIG}
    RUBY
    restarting = Thread.new { restart(server) }
    wait_for("the worker after the canary") { generations(server).include?(2) && starting?(server) }
    canary = server.status["workers"].find { |worker| worker["generation"] == 2 && worker["state"] == "serving" }
    Process.kill("TERM", canary["pid"])
    wait_for("its end") { server.worker_pids.none?(canary["pid"]) }
    let_go(app)
    assert_equal 2, restarting.value
    assert_equal [2, 2], generations(server)
  end

  # --- the end

  def test_stop_during_a_restart
    {
      "booting" => "sleep\n",
      "probing" => "run ->(_env) { sleep }\n",
      "rolling" => "Highball.after_fork { |number| sleep if number > 3 }\n#{CONFIG}"
    }.each do |at, config|
      app = version(1)
      server = serve(app, workers: 2)
      version(2, app, config)
      waiting = Thread.new { HighballServer.run("restart", *server.which) }
      wait_for(at) { stage(server) == at }
      assert_predicate server.stop, :success?, at
      assert_empty server.orphans
      refute_predicate waiting.value.last, :success?, at
    end
  end

  def test_a_release_that_a_link_leads_to
    releases = [version(1), version(2)]
    current = File.join(folder_with, "current")
    FileUtils.ln_s(releases.first, current)
    server = serve(current)
    FileUtils.ln_sf(releases.last, "#{current}.new")
    File.rename("#{current}.new", current)
    # A worker that dies is replaced by one of the same release.
    HighballServer.kill(server.mold_pid)
    HighballServer.kill(server.worker_pids.first)
    wait_for("version 1, booted again", within: 20) { answer(server) == "1" }
    restart(server)
    assert_equal "2", answer(server)
    assert_equal File.realpath(releases.last), server.status["app"]
  end

  def test_a_worker_starts_where_the_folder_of_its_release_is_gone
    app = version(1, folder_with("release/config.ru" => "").then { |folder| File.join(folder, "release") })
    server = serve(app, workers: 2)
    FileUtils.rm_rf(app)
    before = server.worker_pids
    HighballServer.kill(before.first)
    wait_for("another worker") do
      (server.worker_pids - before).length == 1 && workers(server) == %w[serving serving]
    end
    assert_equal "1", answer(server)
  end

  def test_an_app_object_cannot_be_restarted
    server = serve_an_object
    output = highball_fails("restart", *server.which)
    assert_match(/given as an object/, output)
    assert_equal "0", answer(server)
  end
end
