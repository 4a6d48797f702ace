# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Orphans of an application: highball reaps them, however many end at once.
class TenantOrphansTest < TenantsTestCase
  def test_orphans_that_end_while_highball_is_stopped_are_all_reaped
    server, orphans = serve_orphans(400)
    stop_processes([server.pid])
    orphans.each { |pid| HighballServer.kill(pid) }
    wait_for("the end of the orphans") { orphans.none? { |pid| ProcessFacts.alive?(pid) } }
    assert_equal 400, zombies(server).length
    server.signal("CONT")
    wait_for("the zombies to be reaped") { zombies(server).empty? }
  ensure
    server&.signal("CONT")
  end

  def test_orphans_that_end_while_highball_is_busy_are_all_reaped
    server, orphans = serve_orphans(400)
    during_asking(server) do
      orphans.each { |pid| HighballServer.kill(pid) }
      wait_for("the zombies to be reaped") { orphans.none? { |pid| File.exist?("/proc/#{pid}") } }
    end
    assert_empty zombies(server)
  end

  private

  # A server whose application has started this number of processes and orphaned them: [server, their pids].
  def serve_orphans(count)
    app = attacker_app("config.ru" => <<~RUBY)
      run lambda { |env|
        if env["PATH_INFO"] == "/orphans"
          text = `i=0; while [ $i -lt #{count} ]; do sleep 300 >/dev/null 2>&1 & echo $!; i=$((i + 1)); done`
          next [200, {}, [text]]
        end
        [200, {}, ["ok"]]
      }
    RUBY
    server = serve_many(app, env: own_control)
    orphans = server.get("/orphans", within: 60).body.split.map(&:to_i)
    assert_equal count, orphans.length
    wait_for("the orphans to be highball's", within: 30) do
      orphans.all? { |pid| ProcessFacts.stat(pid)[1].to_i == server.pid }
    end
    [server, orphans]
  end

  def zombies(server)
    ProcessFacts.parents.select { |pid, parent| parent == server.pid && !ProcessFacts.alive?(pid) }.keys
  end

  def during_asking(server)
    done = false
    clients = Array.new(4) { Thread.new { assert_equal 200, server.get("/").status until done } }
    clients.each { |client| client.report_on_exception = false }
    yield
  ensure
    done = true
    clients&.each(&:value)
  end

  def own_control = env.merge("HIGHBALL_CONTROL" => folder_with)
end
