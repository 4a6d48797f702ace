# frozen_string_literal: true

# marks: debian13

require_relative "../../support/e2e_test"
require_relative "../../support/load"

# Companions that the mold forks: they find the application loaded, and share its memory.
class ForkedCompanionsTest < E2ETest
  # Loading it takes memory, as an application does.
  APP = <<~'RUBY'
    LOADED_BY = Process.pid
    LARGE = Array.new(400_000) { |number| "text #{number}" }
    run ->(env) { [200, {}, [File.read("version")]] }
  RUBY

  # Notes what it finds, and ends with TERM as programs do that trap it.
  JOBS = <<~'RUBY'
    #!/usr/bin/env ruby
    require "json"
    facts = { pid: Process.pid, parent: Process.ppid, loaded_by: defined?(LOADED_BY) && LOADED_BY, name: $PROGRAM_NAME,
              file: __FILE__, arguments: ARGV, folder: Dir.pwd, companion: ENV.fetch("HIGHBALL_COMPANION"), own: ENV["OWN"],
              main: Thread.current == Thread.main, threads: Thread.list.length, random: rand(2**60),
              session: Process.getsid, group: Process.getpgrp, version: File.read("#{__dir__}/version") }
    at_exit { File.write("#{__dir__}/ended.#{Process.pid}", "") }
    puts "jobs run"
    File.write("#{__dir__}/facts.new", facts.to_json)
    File.rename("#{__dir__}/facts.new", "#{__dir__}/facts.#{Process.pid}")
    trap("TERM") { exit } if ARGV.include?("--trap")
    raise "no luck" if ARGV.include?("--fail")
    sleep
  RUBY

  # Locks a file, as programs do that must not run twice. Giving back this much memory takes some 50 ms.
  LARGE_JOBS = <<~'RUBY'
    require "json"
    lock = File.open("lock", File::RDWR | File::CREAT)
    fact = { pid: Process.pid, lock: lock.flock(File::LOCK_EX | File::LOCK_NB) ? "free" : "taken" }
    large = "x" * (400 << 20)
    File.write("locks", "#{fact.to_json}\n", mode: "a")
    sleep
  RUBY

  def teardown
    if @alone
      HighballServer.kill(@alone)
      Process.wait(@alone)
    end
    super
  end

  def test_it_finds_the_application_loaded_and_runs_as_a_program_does
    FileUtils.mkdir_p(File.join(@folder = folder, "sub"))
    server = serve_with("fork = true\nenv = { OWN = 'yes' }\ndirectory = 'sub'", "../jobs.rb -c 'a b' --trap")
    facts = facts_of_one(server)
    assert_equal mold(server), facts["loaded_by"]
    jobs = File.join(@folder, "jobs.rb")
    assert_equal [jobs, jobs, ["-c", "a b", "--trap"]], facts.values_at("name", "file", "arguments")
    assert_equal [File.join(@folder, "sub"), "jobs.1", "yes"], facts.values_at("folder", "companion", "own")
    assert_equal [true, 1], facts.values_at("main", "threads")
    assert_equal "highball: companion", File.read("/proc/#{facts['parent']}/cmdline").split("\0").first
    assert_equal [facts["parent"], facts["pid"]], facts.values_at("session", "group")
    assert_equal "/dev/null", File.readlink("/proc/#{facts['pid']}/fd/0")
    wait_for("its output") { server.log.include?("jobs | jobs run") }
    server.signal("TERM")
    assert_predicate server.wait, :success?
    assert_path_exists File.join(@folder, "ended.#{facts['pid']}")
  end

  def test_copies_share_memory_and_draw_different_numbers
    serve_with("fork = 'on'\ncount = 3", "ruby jobs.rb")
    wait_for("all") { facts.length == 3 }
    assert_equal 3, facts.map { |one| one["random"] }.uniq.length
    forked = facts.map { |one| ProcessFacts.private_dirty_bytes([one["pid"]]) }
    alone = ProcessFacts.private_dirty_bytes([loaded_alone])
    assert_operator forked.max, :<, alone * 0.4, "what the application has loaded is shared"
  end

  def test_a_death_is_followed_by_another_one_and_a_restart_by_one_of_the_next_version
    server = serve_with("fork = true\nstop_timeout = '5s'", "ruby jobs.rb --trap")
    first = facts_of_one(server)["pid"]
    HighballServer.kill(first)
    wait_for("another one") { facts.length == 2 }
    File.write(File.join(@folder, "version"), "two")
    command_output(server, "restart")
    wait_for("the next version's") { facts.any? { |one| one["version"] == "two" } }
    second = facts.find { |one| one["version"] == "two" }
    assert_equal mold(server), second["loaded_by"]
    command_output(server, "refork") if server.status["workers"].length > 1
    assert ProcessFacts.alive?(second["pid"]), "a refork leaves it alone"
    assert_equal "200", server.request("GET", "/").status.to_s
  end

  def test_it_ends_with_the_process_that_watches_over_it_and_with_highball
    server = serve_with("fork = true", "ruby jobs.rb")
    facts = facts_of_one(server)
    HighballServer.kill(facts["parent"])
    wait_for("its end") { !ProcessFacts.alive?(facts["pid"]) }
    wait_for("another one") { self.facts.length == 2 }
    pids = self.facts.flat_map { |one| one.values_at("pid", "parent") }
    server.signal("KILL")
    server.wait
    wait_for("the end of all") { pids.none? { |pid| ProcessFacts.alive?(pid) } }
  end

  # The kernel kills it, too. Until it has given back its memory, it has its locks.
  def test_another_one_begins_when_it_has_gone_with_the_process_that_watches_over_it
    File.write(File.join(@folder = folder, "large.rb"), LARGE_JOBS)
    server = serve_with("fork = true", "ruby large.rb")
    4.times do |number|
      noted = wait_for("the lock") { locks[number] }
      assert_equal "free", noted["lock"]
      HighballServer.kill(ProcessFacts.parent(noted["pid"]))
      wait_for("another one") { process(server)["state"] == "running" && process(server)["pid"] != noted["pid"] }
    end
    wait_for("the last one") { locks.length == 5 }
    assert_equal(["free"] * 5, locks.map { |one| one["lock"] })
  end

  def test_the_death_of_the_mold_is_none_of_its
    server = serve_with("fork = true", "ruby jobs.rb")
    before = facts_of_one(server)["pid"]
    HighballServer.kill(old = mold(server))
    wait_for("another mold") { ![nil, old].include?(mold(server)) }
    assert ProcessFacts.alive?(before)
    HighballServer.kill(before)
    wait_for("another one") { facts.length == 2 }
    assert_equal "200", server.request("GET", "/").status.to_s
  end

  # Without a handler, TERM ends it as it ends any program of Ruby.
  def test_it_ends_as_it_would_alone
    server = serve_with("fork = true\nrestart = 'never'", "ruby jobs.rb --fail")
    wait_for("its end") { process(server)["state"] == "ended" }
    assert_match(/jobs \| .*jobs\.rb:\d+:in .*no luck \(RuntimeError\)/, server.log)
    assert_includes server.log, "exited with code 1"
    server.stop
    server = serve(@folder, "--config", config("fork = true", "ruby jobs.rb"))
    pid = wait_for("it") { process(server)["pid"] if process(server)["state"] == "running" }
    wait_for("its facts") { facts.any? { |one| one["pid"] == pid } }
    Process.kill("TERM", pid)
    wait_for("the log") { server.log.include?("killed by SIGTERM") }
  end

  def test_a_command_that_names_ruby_has_any_file
    File.write(File.join(@folder = folder, "jobs"), JOBS.lines.drop(1).join)
    server = serve_with("fork = true", "ruby jobs")
    assert_equal mold(server), facts_of_one(server)["loaded_by"]
  end

  def test_what_cannot_be_forked_says_why
    server = serve_with("fork = true", "ruby jobs.rb | cat")
    { "ruby jobs.rb | cat" => "only a shell understands: ruby jobs.rb | cat", "bin/none" => "no Ruby program bin/none",
      "/bin/true" => "/bin/true is not a Ruby program" }.each do |command, why|
      config("fork = true", command)
      server.signal("HUP")
      wait_for(why) { server.log.include?(why) }
    end
    assert_equal "200", server.request("GET", "/").status.to_s
  end

  # Workers load the application themselves, so there is nothing to share.
  def test_without_preloading_it_is_started
    server = serve_with("fork = true", "ruby jobs.rb --trap", "--preload", "off")
    assert_nil facts_of_one(server)["loaded_by"]
  end

  private

  def folder
    folder_with("config.ru" => APP, "version" => "one", "jobs.rb" => JOBS, "config/highball.rb" => "")
  end

  def serve_with(more, command, *options)
    @folder ||= folder
    config(more, command)
    serve(@folder, *options, workers: 2)
  end

  def config(more, command)
    text = "[[process]]\nname = 'jobs'\ncommand = #{command.to_json}\n#{more}\n"
    File.join(@folder, "config/highball.toml").tap { |path| File.write(path, text) }
  end

  def process(server) = server.status["apps"].first.fetch("processes").first
  def mold(server) = server.status.dig("mold", "pid")

  def facts = Dir[File.join(@folder, "facts.[0-9]*")].map { |path| JSON.parse(File.read(path)) }

  # What LARGE_JOBS have found.
  def locks
    path = File.join(@folder, "locks")
    File.exist?(path) ? File.readlines(path).map { |line| JSON.parse(line) } : []
  end

  # A process that has loaded the application, and was not forked.
  def loaded_alone
    reader, writer = IO.pipe
    program = "def run(_) = nil; load 'config.ru'; $stdout.sync = true; puts 'loaded'; sleep"
    @alone = spawn("ruby", "-e", program, chdir: @folder, out: writer)
    writer.close
    assert_equal "loaded\n", reader.gets
    @alone
  end

  def facts_of_one(server)
    wait_for("it") { process(server)["state"] == "running" && facts.any? }
    facts.first
  end
end
