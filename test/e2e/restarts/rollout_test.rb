# frozen_string_literal: true

ENV["MT_CPU"] ||= "4" # its tests mostly wait

require_relative "../../support/restart_test_case"
require_relative "../../support/admin"
require_relative "../../support/visits"

# Rollouts: some visitors get the new version, and the others the old one, until an operator decides.
class RolloutTest < RestartTestCase
  include Visits

  parallelize_me!

  VISITORS = LEVEL == "full" ? 100_000 : 2000
  # A version whose workers die a second after they have started.
  CRASHING = "Highball.after_fork { Thread.new { sleep 1; exit!(3) } }\n#{CONFIG}".freeze

  def test_a_share_of_the_visitors_gets_the_new_version_and_keeps_it
    app = version(1)
    server = serve(app, workers: 2)
    version(2, app)
    assert_match(/^generation 2 serves 5% of the visitors, after \d+\.\d s/, rollout(server, "5%"))
    visitors = Array.new(VISITORS) { Visitor.new }
    assert_in_delta 0.05, visits(server, visitors).count("2").fdiv(VISITORS), 0.0005
    assert_versions(server, visitors, 50)
    rollout(server, "50%")
    assert_versions(server, visitors, 500)
    assert_figures(server, visitors)
    words = /rollout: generation 2 has 50% of the visitors, and 0 of \d+ requests failed, p99 .* ms; before: 0 of \d+,/
    assert_match words, command_output(server, "top", "--once")
    assert_match(/^generation 2 serves, after/, rollout(server, "100%"))
    assert_versions(server, visitors.first(100), 1000)
    assert_empty server.get("/").values("set-cookie")
    assert_equal([2, "done", nil], [server.status["generation"], stage(server), server.status["rollout"]])
  end

  def test_the_versions_share_the_workers_and_one_more
    app = version(1)
    server = serve(app, workers: 3)
    version(2, app)
    { "0.1%" => [1, 1, 1, 2], "50%" => [1, 1, 2, 2], "99%" => [1, 2, 2, 2] }.each do |share, due|
      rollout(server, share)
      wait_for("#{due} at #{share}") { generations(server).sort == due && workers(server).length == 4 }
    end
    rollout(server, "undo")
    wait_for("the old workers") { generations(server) == [1, 1, 1] && workers(server).length == 3 }
  end

  def test_a_visitor_gets_a_number_that_no_cache_keeps_and_no_other_text_counts
    app = holding("20%", config: CONFIG.sub('"x-version"', '"cache-control" => env["QUERY_STRING"], "x-version"'))
    line = app.get("/").values("set-cookie").first
    assert_match(%r{\Ahighball-rollout=\d{1,3}; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax\z}, line)
    assert_empty app.get("/?public,max-age=60").values("set-cookie")
    refute_empty app.get("/?private,max-age=60").values("set-cookie")
    %w[1000 -1 +1 01234 1.0 x].each do |forged|
      refute_empty app.get("/", { "Cookie" => "highball-rollout=#{forged}" }).values("set-cookie"), forged
    end
    app.connect do |connection|
      # A proxy sends requests of all visitors over the same connection.
      versions = [0, 999, 199, 200].map { |number| Visitor.numbered(number).version(connection) }
      assert_equal %w[2 1 2 1], versions
    end
  end

  def test_undo_under_load_fails_no_request
    server = holding("50%", workers: 2)
    failures = during_visits(server) do
      assert_match(/^generation 1 serves all visitors again/, rollout(server, "undo"))
      assert_equal %w[1 1], versions_of(server, 0, 999)
    end
    assert_empty failures
    assert_equal [["highball rollout", "undone"], nil], [server.status["restarts"].last.values_at("asked_by", "state"),
                                                         server.status["last_failure"]]
    assert_includes server.log, "rollout undone"
    assert_match(/no rollout is under way/, refused(server, "undo"))
    # The next one begins again.
    rollout(server, "1%")
    assert_equal %w[2 1], versions_of(server, 0, 999)
  end

  def test_the_whole_way_under_load_fails_no_request
    app = version(1)
    server = serve(app, workers: 2)
    version(2, app)
    failures = during_visits(server) { %w[1% 60% 100%].each { |share| rollout(server, share) } }
    assert_empty failures
    assert_equal %w[2 2], versions_of(server, 0, 999)
  end

  def test_a_broken_version_gets_no_visitor
    app = version(1)
    server = serve(app, workers: 2)
    failures = during_visits(server, only: "1") do
      version(2, app, "raise 'broken'\n#{CONFIG}")
      assert_match(/the previous version is still serving.*broken/m, fails(server, "50%"))
      version(3, app, CONFIG.sub("[200,", "[500,"))
      assert_match(/the previous version is still serving.*500/m, fails(server, "50%"))
    end
    assert_empty failures
    assert_equal [1, 1], generations(server)
  end

  def test_workers_that_die_are_replaced_by_workers_of_their_version
    server = holding("30%", workers: 2)
    failures = during_visits(server, methods: %w[GET]) do
      [2, 1].each do |generation|
        victims = pids_of(server, generation)
        victims.each { |pid| HighballServer.kill(pid) }
        wait_for("workers in the place of generation #{generation}") do
          pids = pids_of(server, generation)
          pids.length == victims.length && (pids & victims).empty?
        end
        assert_equal %w[2 1], versions_of(server, 0, 999)
      end
    end
    assert_empty failures
    assert_equal "holding", stage(server)
  end

  def test_a_crash_loop_of_the_new_version_undoes_it
    app = version(1)
    server = serve(app, workers: 2)
    version(2, app, CRASHING)
    rollout(server, "10%")
    wait_for("the end of the rollout", within: 30) { stage(server) == "failed" }
    failure = server.status["restarts"].last["failure"]
    assert_match(/crash loop of the new version: 3 workers died.*exited with code 3/, failure)
    wait_for("the old workers") { generations(server) == [1, 1] && workers(server).length == 2 }
    assert_equal %w[1 1], versions_of(server, 0, 999)
    assert_match(/the restart failed.*crash loop of the new version/m, server.log)
  end

  def test_other_changes_are_refused_meanwhile
    server = holding("20%")
    way_out = /a rollout is under way: finish it \(highball rollout 100%\), or go back \(highball rollout undo\)/
    %w[restart refork upgrade].each do |command|
      assert_match way_out, highball_fails(command, *server.which), command
    end
    assert_match(/has 20% of the visitors: its share only grows/, refused(server, "10%"))
    server.signal("USR1")
    wait_for("a refusal of the signal") { server.log.match?(/no restart.*USR1/) }
    assert_equal [%w[2 1], "holding"], [versions_of(server, 0, 999), stage(server)]
    rollout(server, "20%")
    # A new configuration takes effect after the rollout.
    rollout(server, "undo")
    assert_equal 3, restart(server)
  end

  def test_without_a_rollout_and_during_a_restart
    app = version(1)
    server = serve(app)
    assert_match(/no rollout is under way: `highball restart`/, refused(server, "100%"))
    slow(app, 2)
    restarting = Thread.new { restart(server) }
    wait_for("the restart") { stage(server) == "booting" }
    assert_match(/a restart is under way: wait for its outcome/, refused(server, "5%"))
    let_go(app)
    assert_equal 2, restarting.value
    %w[0% 101% 5.55% five].each do |text|
      output, ended = HighballServer.run("rollout", text, *server.which)
      assert_equal 2, ended.exitstatus, output
    end
  end

  def test_a_rollout_is_undone_while_it_boots
    app = version(1)
    server = serve(app)
    slow(app, 2)
    waiting = Thread.new { HighballServer.run("rollout", "5%", *server.which) }
    wait_for("the boot") { stage(server) == "booting" }
    rollout(server, "undo")
    output, ended = waiting.value
    assert_match(/the rollout of generation 2 was undone/, output)
    refute_predicate ended, :success?
    wait_for("its end") { server.settled? }
  end

  def test_stop_while_it_holds
    server = holding("50%", workers: 2)
    failures = during_visits(server) { assert_predicate server.stop, :success? }
    assert_empty failures.grep_v(/\Aclosed|ECONNREFUSED|503/)
    assert_empty server.orphans
  end

  # --- files and stored responses

  def test_each_version_has_its_files_and_both_find_all
    releases = [1, 2].map do |number|
      folder = version(number)
      FileUtils.mkdir_p(File.join(folder, "public"))
      File.write(File.join(folder, "public/page.txt"), "page of #{number}")
      File.write(File.join(folder, "public/only#{number}.txt"), "only #{number}")
      folder
    end
    current = File.join(folder_with, "current")
    File.symlink(releases[0], current)
    server = serve(current, workers: 2)
    FileUtils.ln_sf(releases[1], "#{current}.new")
    File.rename("#{current}.new", current)
    rollout(server, "20%")
    server.connect do |connection|
      bodies = [0, 999].map { |number| Visitor.numbered(number).get(connection, "/page.txt").body }
      assert_equal ["page of 2", "page of 1"], bodies
      [0, 999].product([1, 2]) do |number, of|
        assert_equal "only #{of}", Visitor.numbered(number).get(connection, "/only#{of}.txt").body
      end
      assert_empty Visitor.new.get(connection, "/page.txt").values("set-cookie")
    end
  end

  def test_stored_responses_are_of_the_old_version_and_for_its_visitors
    config = CONFIG.sub('"x-version"', '"cache-control" => "public, max-age=60", "x-version"')
    server = holding("20%", config: config, options: ["--cache", "8m"])
    server.connect do |connection|
      answers = [999, 0, 999, 0].map { |number| Visitor.numbered(number).get(connection) }
      assert_equal(%w[1 2 1 2], answers.map { |answer| answer["x-version"] })
      assert_match(/hit/, answers[2]["cache-status"])
      assert_equal "highball; fwd=bypass", answers[3]["cache-status"]
      rollout(server, "100%")
      assert_equal(%w[2 2], [999, 0].map { |number| Visitor.numbered(number).version(connection) })
    end
  end

  private

  # A server of version 1 whose version 2 has this share of the visitors.
  def holding(share, workers: 1, config: CONFIG, options: [])
    app = version(1, folder_with, config)
    server = serve(app, *options, workers: workers)
    version(2, app, config)
    rollout(server, share)
    server
  end

  def rollout(server, order) = highball("rollout", order, *server.which, within: 60)

  # The message of an order that the server refuses.
  def refused(server, order)
    output = highball_fails("rollout", order, *server.which)
    assert_match(/does no rollout/, output)
    output
  end

  def fails(server, order) = highball_fails("rollout", order, *server.which, within: 60)

  # Visitors with numbers below this one get version 2, the others version 1, and no number changes.
  def assert_versions(server, visitors, below)
    numbers = visitors.map(&:number)
    due = numbers.map { |number| number < below ? "2" : "1" }
    assert_equal due, visits(server, visitors)
    assert_equal numbers, visitors.map(&:number)
  end

  def pids_of(server, generation)
    workers = server.status["workers"].select do |worker|
      worker["generation"] == generation && worker["state"] == "serving"
    end
    workers.map { |worker| worker["pid"] }
  end

  # What status says is what the visitors have met.
  def assert_figures(server, visitors)
    rollout = server.status["rollout"]
    assert_equal [2, 50.0, true], rollout.values_at("generation", "share_percent", "holds")
    # Three visits of each, at two shares.
    below = ->(number) { visitors.count { |visitor| visitor.number < number } }
    expected = (2 * below[50]) + below[500]
    assert_in_delta expected, rollout.dig("new", "requests"), 10
    assert_in_delta (3 * VISITORS) - expected, rollout.dig("old", "requests"), 10
    assert_equal 0, rollout.dig("new", "errors")
    assert_operator rollout.dig("new", "p50_ms"), :<=, rollout.dig("new", "p99_ms")
    text = highball("status", *server.which)
    assert_match(/rollout +generation 2 serves 50% of the visitors$/, text)
    assert_match(/new version +generation 2: \d+ requests, 0 errors; p50 [\d.]+ ms,\s+p99 [\d.]+ ms$/, text)
  end
end
