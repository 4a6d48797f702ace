# frozen_string_literal: true

require_relative "../../support/admin"
require_relative "../../support/e2e_test"
require_relative "../../support/load"

# Processes that run beside the workers of an application: [[process]] and --with.
class CompanionsTest < E2ETest
  include Admin

  APP = 'run ->(_) { [200, {}, [File.read("version")]] }'

  # Appends what happens to it to the file `journal`: a line for its start, and one for TERM.
  JOBS = <<~'RUBY'
    note = ->(what) { File.open("journal", "a") { |file| file.syswrite("#{what} #{VERSION} #{Process.pid}\n") } }
    VERSION = File.read("version")
    $stdout.sync = true
    puts "jobs of #{ENV.fetch('HIGHBALL_COMPANION')} in #{ENV.fetch('RAILS_ENV')}"
    trap("TERM") do
      sleep 0.2
      note.call("ends")
      exit
    end
    note.call("begins")
    sleep
  RUBY

  # Takes 200 MiB when it is asked to: what it has taken is its own.
  GROWING = <<~'RUBY'
    File.write("journal", "begins\n", mode: "a")
    sleep 0.05 until File.exist?("grow")
    taken = "x" * 200 * 1024 * 1024
    sleep
  RUBY

  DEAF = 'trap("TERM", "IGNORE"); File.write("deaf", "begins"); sleep'

  # Starts a process that leaves it and ignores TERM.
  LEAVING = 'fork { Process.setsid; fork { trap("TERM", "IGNORE"); File.write("left", Process.pid); sleep } }; sleep'

  def test_it_starts_when_the_application_serves_and_ends_with_it
    server = serve_with("--with", "jobs=ruby jobs.rb")
    jobs = wait_until_running(server, "jobs")
    assert_includes server.log, "jobs | jobs of jobs.1 in production"
    assert_operator server.log.index("serving on"), :<, server.log.index("process started")
    server.signal("TERM")
    assert_predicate server.wait, :success?
    assert_equal ["begins one #{jobs['pid']}", "ends one #{jobs['pid']}"], journal
  end

  def test_it_is_restarted_with_the_application_and_no_two_versions_run
    server = serve_with("--with", "jobs=ruby jobs.rb")
    wait_until_running(server, "jobs")
    10.times do |number|
      File.write(File.join(@folder, "version"), "v#{number}")
      command_output(server, "restart")
      wait_for("the next version's jobs") { journal.length == 3 + (2 * number) }
    end
    assert_equal [*%w[begins ends] * 10, "begins"], steps
    versions = journal.first(5).map { |line| line.split[1] }
    assert_equal %w[one one v0 v0 v1], versions
  end

  def test_a_failed_restart_leaves_it_running
    server = serve_with("--with", "jobs=ruby jobs.rb")
    before = wait_until_running(server, "jobs")
    File.write(File.join(@folder, "config.ru"), "raise 'no'")
    highball_fails("restart", *server.which, within: 60)
    assert_equal before["pid"], running(server, "jobs")["pid"]
    assert_equal 1, journal.length
  end

  def test_a_hot_restart_starts_the_next_ones_when_the_last_ones_have_ended
    server = serve_with("--with", "jobs=ruby jobs.rb")
    wait_until_running(server, "jobs")
    command_output(server, "upgrade")
    wait_for("the next one to begin") { journal.length == 3 }
    assert_equal %w[begins ends begins], steps
  end

  def test_a_changed_entry_replaces_its_process_alone
    server = serve_with(file: process("jobs", "ruby jobs.rb", ""))
    wait_until_running(server, "jobs")
    workers = server.worker_pids
    changed = process("jobs", "ruby jobs.rb", "env = { A = '1' }") + process("other", "sleep 600", "")
    File.write(File.join(@folder, "config/highball.toml"), changed)
    server.signal("HUP")
    wait_for("both") { running(server, "other") && journal.length == 3 }
    assert_equal %w[begins ends begins], steps
    assert_equal workers, server.worker_pids
  end

  def test_it_is_killed_when_highball_is
    server = serve_with("--with", "jobs=ruby jobs.rb", "--with", "deaf=#{deaf}")
    pids = %w[jobs deaf].map { |name| wait_until_running(server, name)["pid"] }
    server.signal("KILL")
    server.wait
    wait_for("its processes to end") { pids.none? { |pid| ProcessFacts.alive?(pid) } }
  end

  def test_it_is_killed_when_the_process_that_watches_over_it_is
    server = serve_with("--with", "jobs=ruby jobs.rb")
    before = wait_until_running(server, "jobs")["pid"]
    HighballServer.kill(ProcessFacts.parent(before))
    wait_for("the next one") { ![nil, before].include?(running(server, "jobs")&.fetch("pid")) }
    refute ProcessFacts.alive?(before)
  end

  def test_commands_and_pages_show_it
    server = serve_with("--with", "jobs=ruby jobs.rb", "--with", "late=sleep 0; exit 3", *admin)
    pid = wait_until_running(server, "jobs")["pid"]
    wait_for("a crash loop") { processes(server).last["crash_loop"] }
    top = command_output(server, "top", "--once")
    assert_match(/^  jobs +#{pid} running/, top)
    assert_match(/crash_loop: late ended \d+ times soon after/, top)
    memory = command_output(server, "memory")
    assert_match(/^  process jobs +#{pid} /, memory)
    assert_match(/^  guardian jobs +#{ProcessFacts.parent(pid)} /, memory)
    page = ask_admin("/").body
    assert_match(%r{<th scope="row">jobs</th><td>running</td>}, page)
    assert_match(/serving, but a process is in a crash loop/, page)
  end

  def test_one_that_ignores_term_is_killed_after_its_time
    server = serve_with(file: process("deaf", deaf, "stop_timeout = '1s'"))
    wait_until_running(server, "deaf")
    server.signal("TERM")
    assert_predicate server.wait, :success?
    assert_includes server.log, "killing the process: it did not end within stop_timeout"
  end

  def test_what_leaves_it_is_ended_with_it
    leaving = "ruby leaving.rb"
    server = serve_with(file: process("leaving", leaving, "stop_timeout = '1s'"))
    running = wait_until_running(server, "leaving")
    left = wait_for("what leaves") { File.exist?(left_file) && File.read(left_file).to_i.nonzero? }
    HighballServer.kill(running["pid"])
    wait_for("what has left to end") { !ProcessFacts.alive?(left) }
    assert_includes server.log, "left others behind"
    wait_for("the next one") { ![nil, running["pid"]].include?(running(server, "leaving")&.fetch("pid")) }
  end

  def test_a_hundred_deaths_cost_no_request
    long
    server = serve_with(file: process("jobs", "ruby jobs.rb", "count = 20"))
    deaths = 0
    outcomes = Load.during(server, clients: 4, target: "/") do
      wait_for("100 deaths", within: 120) do
        pids = processes(server).filter_map { |one| one["pid"] if one["state"] == "running" }
        pids.each { |pid| HighballServer.kill(pid) }
        (deaths += pids.length) >= 100
      end
    end
    assert_equal [200], outcomes.map(&:result).uniq
  end

  def test_one_that_cannot_be_run_says_so_and_is_tried_ever_more_rarely
    server = serve_with(file: process("gone", ["./not-there", "\e[2J"], "") + process("late", "sleep 0; exit 3", ""))
    wait_for("crash loops") { processes(server).all? { |one| one["crash_loop"] } }
    assert_includes server.log, "could not be run: No such file or directory"
    refute_includes server.log, "\e[2J"
    table = command_output(server, "status")
    assert_match(/crash loop .*late ended \d+ times soon after it was started; last it exited with code 3/, table)
    assert_equal "200", server.request("GET", "/").status.to_s
  end

  def test_its_output_is_bounded_and_holds_nothing_up
    flood = "ruby -e 'loop { $stdout.syswrite(%q(x) * 200 + 10.chr) }'"
    server = serve_with("--max-output", "64K", file: process("flood", flood, ""))
    wait_for("the notice") { server.log.include?("the application prints too much") }
    assert_operator timings(20) { server.request("GET", "/") }[10], :<, 0.1
    assert_operator server.log.bytesize, :<, 20 * MIB
  end

  def test_a_process_that_is_done_is_left_alone
    server = serve_with(file: process("once", "echo done", "restart = 'on-failure'"))
    wait_for("its end") { processes(server).first["state"] == "ended" }
    assert_includes server.log, "the process is done"
    assert_equal 0, processes(server).first["restarts"]
  end

  def test_one_starts_after_another_runs_or_is_done
    schema = process("schema", "sleep 0.1; grep -q two version && echo done", "restart = 'never'")
    jobs = process("jobs", "ruby jobs.rb", "start_after = ['schema', 'other']")
    server = serve_with(file: jobs + schema + process("other", "sleep 600", ""))
    wait_for("the failed one") { processes(server).any? { |one| one["state"] == "ended" } && running(server, "other") }
    assert_equal %w[waiting ended running], (processes(server).map { |one| one["state"] })
    assert_includes server.log, "the process has failed: what starts after it does not start"
    File.write(File.join(@folder, "version"), "two")
    command_output(server, "restart")
    wait_until_running(server, "jobs")
    assert_equal ["begins two"], (journal.map { |line| line[/\w+ \w+/] })
    File.write(File.join(@folder, "config/highball.toml"), process("jobs", "x", "start_after = 'jbs'"))
    assert_match(/there is no process `jbs`/, highball_fails("serve", @folder))
  end

  def test_one_that_is_over_its_memory_limit_is_ended_and_started_again
    long
    server = serve_with(file: process("growing", "exec ruby growing.rb", "memory_limit = '200M'"))
    before = wait_until_running(server, "growing")["pid"]
    File.write(File.join(@folder, "grow"), "")
    wait_for("its end", within: 30) { server.log.include?("which uses more than its memory_limit") }
    File.delete(File.join(@folder, "grow"))
    wait_for("the next one") { journal.length > 1 && ![nil, before].include?(running(server, "growing")&.fetch("pid")) }
    assert_match(/was ended: its 2\d\d MiB are more than its memory_limit/, processes(server).first["last_end"].to_s)
    assert_equal "200", server.request("GET", "/").status.to_s
  end

  def test_processes_of_a_procfile
    procfile = "web: false\nworker: sleep 600\nclock: false\n"
    folder = folder_with("config.ru" => APP, "version" => "one", "Procfile" => procfile)
    server = serve(folder, "--procfile", "web,worker", "--with", "other=sleep 600")
    wait_for("both") { %w[other worker].all? { |name| running(server, name) } }
    assert_equal 2, processes(server).length
    assert_includes highball_fails("serve", folder, "--procfile", "web,clokc"), "did you mean `clock`?"
    assert_includes highball_fails("serve", folder, "--procfile", "worker", "--with", "worker=x"), "two processes"
  end

  def test_mistakes_are_refused_with_what_to_write
    folder = folder_with("config.ru" => APP, "version" => "one")
    { "jobs" => "NAME=COMMAND", "web=x" => "Highball itself", "A=x" => "not a name" }.each do |text, part|
      assert_includes highball_fails("serve", folder, "--with", text), part
    end
  end

  private

  def serve_with(*options, file: nil)
    @folder = folder_with("config.ru" => APP, "version" => "one", "jobs.rb" => JOBS, "deaf.rb" => DEAF,
                          "leaving.rb" => LEAVING, "growing.rb" => GROWING)
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/highball.toml"), file) if file
    serve(@folder, *options)
  end

  def process(name, command, more) = "[[process]]\nname = '#{name}'\ncommand = #{command.to_json}\n#{more}\n"

  def deaf = "ruby deaf.rb"

  def processes(server) = server.status["apps"].first.fetch("processes")

  def running(server, name) = processes(server).find { |one| one["name"] == name && one["state"] == "running" }

  def wait_until_running(server, name)
    wait_for("#{name} to run") { running(server, name)&.fetch("pid") && journal_of?(name) && running(server, name) }
  end

  # These note that they have begun.
  def journal_of?(name)
    file = { "jobs" => "journal", "growing" => "journal", "deaf" => "deaf" }[name]
    file.nil? || File.exist?(File.join(@folder, file))
  end

  def steps = journal.map { |line| line.split.first }
  def left_file = File.join(@folder, "left")
  def journal = File.readlines(File.join(@folder, "journal"), chomp: true)
end
