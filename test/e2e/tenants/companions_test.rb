# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Processes that run beside the workers of applications of other users, on a server that root started.
class TenantCompanionsTest < TenantsTestCase
  # Writes what it is into the file `facts`.
  WHO = <<~'RUBY'
    require "json"
    sockets = Dir.glob("/proc/self/fd/*").filter_map { |file| File.readlink(file) rescue nil }.grep(/socket|memfd/)
    facts = { ids: [Process.uid, Process.euid, Process.gid, Process.egid], groups: Process.groups.sort,
              variables: ENV.values_at("HOME", "USER", "LOGNAME", "SHELL"), folder: Dir.pwd, sockets: sockets,
              secret: (File.read(ARGV[0]) rescue $!.class.name) }
    File.write("facts", facts.to_json)
    sleep
  RUBY

  def test_it_runs_as_the_user_of_its_application_with_nothing_of_roots
    folder = attacker_app("who.rb" => WHO)
    server = serve_tenants(folder, entries: { ATTACKER => entry("who", ["ruby", "who.rb", @root_file]) })
    facts = wait_for_json(File.join(folder, "facts"))
    assert_runs_as ATTACKER, facts
    assert_equal [folder, "Errno::EACCES"], facts.values_at("folder", "secret")
    assert_empty facts["sockets"]
    assert_victim_serves(server)
  end

  def test_an_application_may_name_processes_in_its_own_file
    own = entry("who", ["ruby", "who.rb", @root_file], "process")
    folder = attacker_app("who.rb" => WHO, "config/highball.toml" => own)
    serve_tenants(folder)
    assert_runs_as ATTACKER, wait_for_json(File.join(folder, "facts"))
  end

  def test_a_crash_loop_and_a_flood_are_no_burden_to_others
    flood = ["ruby", "-e", "loop { $stdout.syswrite(%q(forged) * 40 + 10.chr) }"]
    entries = { ATTACKER => entry("flood", flood) + entry("loop", ["ruby", "-e", "exit 1"], count: 20) }
    server = serve_tenants(entries: entries)
    wait_for("crash loops") { server.log.scan("crash loop: the process").length >= 20 }
    ends = server.log.scan("the process ended unasked").length
    assert_operator ends, :<=, 20 * 3
    assert_victim_serves(server)
    assert_includes server.log, "attacker flood | forged"
    server.signal("TERM")
    assert_predicate server.wait, :success?
  end

  def test_its_processes_end_when_the_server_is_killed
    deaf = "trap('TERM', 'IGNORE'); fork { Process.setsid; File.write('left', Process.pid); sleep }; sleep"
    folder = attacker_app("deaf.rb" => deaf)
    server = serve_tenants(folder, entries: { ATTACKER => entry("deaf", ["ruby", "deaf.rb"]) })
    file = File.join(folder, "left")
    left = wait_for("it to run") { File.exist?(file) && File.read(file).to_i.nonzero? }
    server.signal("KILL")
    server.wait
    wait_for("its processes to end") { !ProcessFacts.alive?(left) }
  end

  def test_one_that_stops_what_watches_over_it_holds_nothing_up
    stopping = "trap('TERM', 'IGNORE'); Process.kill(:STOP, Process.ppid); File.write('stopped', Process.ppid); sleep"
    folder = attacker_app("stopping.rb" => stopping)
    more = "#{entry('stopping', ['ruby', 'stopping.rb'])}stop_timeout = '1s'\n"
    server = serve_tenants(folder, entries: { ATTACKER => more })
    file = File.join(folder, "stopped")
    guardian = wait_for("it to run") { File.exist?(file) && File.read(file).to_i.nonzero? }
    highball("restart", "attacker", *server.which, env: server_env, within: 60)
    wait_for("it to be killed") { !ProcessFacts.alive?(guardian) }
    assert_victim_serves(server)
    server.signal("TERM")
    assert_predicate server.wait, :success?
  end

  def test_a_hot_restart_starts_the_next_ones_when_the_last_ones_have_ended
    journal = <<~'RUBY'
      note = ->(what) { File.open("journal", "a") { |file| file.syswrite("#{what}\n") } }
      trap("TERM") { sleep 0.2; note.call("ends"); exit }
      note.call("begins")
      sleep
    RUBY
    folder = attacker_app("jobs.rb" => journal)
    server = serve_tenants(folder, entries: { ATTACKER => entry("jobs", ["ruby", "jobs.rb"]) })
    file = File.join(folder, "journal")
    wait_for("it to run") { File.exist?(file) }
    highball("upgrade", *server.which, env: server_env, within: 60)
    wait_for("the next one") { File.readlines(file, chomp: true) == %w[begins ends begins] }
    assert_victim_serves(server)
  end

  private

  def entry(name, command, table = "app.process", count: 1)
    "[[#{table}]]\nname = '#{name}'\ncommand = #{command.to_json}\ncount = #{count}\n"
  end

  def wait_for_json(path)
    wait_for("the facts") do
      File.exist?(path) && JSON.parse(File.read(path))
    rescue JSON::ParserError
      nil
    end
  end
end
