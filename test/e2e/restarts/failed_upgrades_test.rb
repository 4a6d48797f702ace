# frozen_string_literal: true

# marks: long

require_relative "../../support/upgrade_test_case"

# A hot restart that fails leaves everything as it was.
class FailedUpgradesTest < UpgradeTestCase
  def test_a_version_that_does_not_boot
    fails_unnoticed(/loading the app failed: ArgumentError: no KEY was given/, /config\.ru:1/) do |app|
      version(2, app, "raise ArgumentError, 'no KEY was given'\n")
    end
  end

  def test_a_version_that_hangs_while_it_boots
    fails_unnoticed(/the boot takes longer than boot_timeout/, options: ["--boot-timeout", "6s"]) do |app|
      version(2, app, "sleep\n")
    end
  end

  def test_a_version_that_answers_500
    fails_unnoticed(%r{GET / failed: status 500, RuntimeError: no luck \(.*config\.ru:\d+\)}) do |app|
      version(2, app, "run ->(_env) { raise 'no luck' }\n")
    end
  end

  def test_a_version_that_does_not_answer
    fails_unnoticed(%r{GET / was not answered within 500ms}, options: ["--probe-timeout", "500ms"]) do |app|
      version(2, app, "run ->(_env) { sleep }\n")
    end
  end

  def test_a_version_whose_workers_cannot_start
    fails_unnoticed(/does not come up: .*no luck/, options: ["--max-boot-failures", "1"]) do |app|
      version(2, app, "Highball.after_fork { raise 'no luck' }\n#{CONFIG}")
    end
  end

  def test_a_configuration_file_that_is_broken
    fails_unnoticed(/cannot read its configuration: .*line 1.*did you mean `threads`/) do |app|
      File.write(File.join(app, "highball.toml"), "thread = 2\n")
    end
  end

  def test_an_address_that_another_program_has
    taken = TCPServer.new("127.0.0.1", 0)
    app = version(1)
    config = File.join(app, "highball.toml")
    File.write(config, "bind = \"127.0.0.1\"\nport = 0\n")
    server = serve(app, command: [HighballServer::BINARY, "-e", "production", "-w", "1"])
    File.write(config, "bind = [\"127.0.0.1\", \"127.0.0.1:#{taken.addr[1]}\"]\nport = 0\n")
    assert_match(/cannot listen on .*#{taken.addr[1]}: another program is using it/, upgrade_fails(server))
    assert_equal "1", answer(server)
  ensure
    taken.close
  end

  def test_a_binary_that_is_missing_or_no_program
    app = version(1)
    server, binary = serve_by_copy(app)
    File.rename(binary, "#{binary}.away")
    assert_match(/cannot run #{binary}: No such file.*serve|Install Highball/m, upgrade_fails(server))
    File.write(binary, "x")
    assert_match(/cannot run #{binary}: Permission denied/, upgrade_fails(server))
    File.write(binary, "#!/bin/sh\nexit 3\n")
    File.chmod(0o755, binary)
    assert_match(/ended before it served: exited with code 3/, upgrade_fails(server))
    assert_match(/ended before it served/, server.status.dig("upgrade", "failure"))
    # The last program that is put there serves in the end.
    File.rename("#{binary}.away", binary)
    serves_by(server, upgrade(server))
  end

  def test_a_program_that_never_says_anything
    long
    app = version(1)
    server, binary = serve_by_copy(app, "--boot-timeout", "6s")
    File.rename(binary, "#{binary}.away")
    File.write(binary, "#!/bin/sh\nexec sleep 1000\n")
    File.chmod(0o755, binary)
    assert_match(/did not serve within 1\ds/, upgrade_fails(server))
    assert_equal [server.pid], highballs(server)
  end

  # --- several at once

  def test_what_is_asked_for_meanwhile
    app = version(1)
    server = serve(app, "--drain-timeout", "1s")
    begin_upgrade(server, app)
    assert_match(/a hot restart is under way already/, upgrade_fails(server))
    output, = HighballServer.run("restart", *server.which)
    assert_match(/a hot restart is under way, and brings the new version/, output)
    # This request is kept, and passed on.
    server.signal("USR1")
    wait_for("the wish") { server.status["restarts"].any? }
    let_go(app)
    wait_for("the new process") { server.status["pid"] != server.pid }
    wait_for("its restart", within: 20) { server.status["restarts"].map { |one| one["state"] } == ["done"] }
    assert_equal "2", answer(server)
  end

  def test_one_that_is_asked_for_during_a_restart_waits
    app = version(1)
    server = serve(app, "--drain-timeout", "1s")
    slow(app, 2)
    server.signal("USR1")
    wait_for("the restart") { stage(server) == "booting" }
    waiting = Thread.new { upgrade(server) }
    wait_for("the hot restart") { stage_of_upgrade(server) == "queued" }
    let_go(app)
    serves_by(server, waiting.value)
    assert_equal "2", answer(server)
  end

  # --- the end, and other deaths

  def test_stop_while_the_new_process_boots_ends_both
    app = version(1)
    server = serve(app)
    new = begin_upgrade(server, app)
    assert_predicate server.stop, :success?
    assert gone?(new)
    assert_empty server.orphans
  end

  def test_stop_while_the_old_process_finishes_ends_both
    server = serve(version(1), "--drain-timeout", "30s")
    server.connect do |connection|
      connection.get("/")
      upgrade(server)
      assert_predicate server.stop(within: 15), :success?
      assert_predicate connection, :ended?
      assert_empty server.orphans
    end
  end

  def test_the_old_process_is_killed_after_the_new_one_serves
    server = serve(version(1), "--drain-timeout", "1s")
    port = server.port
    pid = upgrade(server)
    HighballServer.kill(server.pid)
    server.wait
    assert_equal port, server.port
    serves_by(server, pid)
    wait_for("the rest of the old one") { highballs(server) == [pid] }
    # Another hot restart works, and leaves no PID proxy.
    third = upgrade(server)
    serves_by(server, third)
    wait_for("the end of the second") { highballs(server) == [third] }
    stop_rest(server, third)
  end

  private

  def fails_unnoticed(*clues, options: [])
    app = version(1)
    server = serve(app, *options, workers: 2)
    before = server.worker_pids
    yield app
    load = KeepAliveLoad.during(server) do |clients|
      output = upgrade_fails(server)
      assert_match(/the process with pid #{server.pid} is still serving/, output)
      clues.each { |clue| assert_match clue, output }
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal [[1]], load.versions_met.uniq
    wait_for("the end of the new processes") { highballs(server) == [server.pid] }
    assert_equal before, server.worker_pids
    clues.each { |clue| assert_match clue, server.log }
    assert_equal "failed", server.status.dig("upgrade", "state")
  end
end
