# frozen_string_literal: true

# marks: alone (it stops processes of a user whose processes other tests need)

require_relative "../../support/spawner_test_case"

# A user may send signals to all processes that run as this user, as soon as they do.
class TenantStopsTest < SpawnerTestCase
  def test_a_user_who_stops_new_processes_stops_only_its_own
    files = { "public/own.txt" => "own" }
    server = serve_tenants(attacker_app(files), victim_app(files))
    stopping_what_is_new do
      12.times do
        openers_of(server, ATTACKER).each { |pid| HighballServer.kill(pid) }
        ask_attacker(server, "/own.txt?#{rand}")
        assert_victim_serves(server)
      end
      before = victims_mold(server)
      HighballServer.kill(before)
      wait_for("another mold of the victim's", within: 20) { ![nil, before].include?(victims_mold(server)) }
      assert_victim_serves(server)
    end
    server.stop(within: 30)
    assert_empty server.orphans(within: 10)
  end

  private

  # The kernel assigns process ids in order: a process of the attacker's stops the next ones over and over.
  def stopping_what_is_new
    stopper = fork do
      Process::UID.change_privilege(Etc.getpwnam(ATTACKER).uid)
      loop { stop_next(File.read("/proc/loadavg")[/\d+$/].to_i) }
    end
    yield
  ensure
    HighballServer.kill(stopper)
    Process.wait(stopper)
  end

  def stop_next(last)
    50.times do
      (last..last + 3).each do |pid|
        Process.kill(:STOP, pid) unless pid == Process.pid
      rescue Errno::ESRCH, Errno::EPERM
        next
      end
    end
  end

  def victims_mold(server)
    server_status(server)["apps"].find { |app| app["name"] == "victim" }.dig("mold", "pid")
  end
end
