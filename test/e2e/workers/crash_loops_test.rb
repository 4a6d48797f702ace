# frozen_string_literal: true

ENV["MT_CPU"] ||= "4" # its tests mostly wait

require_relative "../../support/e2e_test"
require_relative "../../support/admin"
require_relative "../../support/load"

# Workers that die soon after they were ready, one after the other: the next ones are forked later, one line in the log
# says what happens, and status, readiness, metrics and doctor say the same.
class CrashLoopsTest < E2ETest
  parallelize_me!

  # What is in the file `crash` happens in each worker, a moment after its start.
  APP = <<~'RUBY'
    Process.singleton_class.prepend(Module.new do
      def _fork
        pid = super
        crash = File.join(__dir__, "crash")
        Thread.new { eval(File.read(crash)) } if pid.zero? && File.exist?(crash)
        pid
      end
    end)
    run ->(env) { env["PATH_INFO"] == "/die" ? exit!(9) : [200, {}, [Process.pid.to_s]] }
  RUBY
  # How workers die, and what status shows.
  WAYS = {
    "exit" => ["sleep 1; exit!(3)", /exited with code 3/],
    "success" => ["sleep 1; exit!(0)", /exited with code 0/],
    "signal" => ["sleep 1; Process.kill(:KILL, Process.pid)", /was killed by SIGKILL/],
    "exec" => ['sleep 1; exec("sleep", "60")', /closed its control socket/],
    "exception" => ["Thread.current.abort_on_exception = true; sleep 1; raise 'no'", /exited with code 1/]
  }.freeze

  def test_ways_to_die
    concurrently(WAYS.length) { |index| assert_crash_loop(*WAYS.values[index]) }
  end

  def test_every_report_shows_it_and_a_restart_of_what_is_fixed_serves_at_once
    app, admin_path = crashing("sleep 1; exit!(3)")
    server = serve(app, "--admin", "unix:#{admin_path}", workers: 2)
    wait_for_loop(server)
    status = server.status
    assert_operator status.dig("crash_loop", "deaths"), :>=, 3
    assert_match(/\d+ workers died in \d+ s; the last one, worker \d+, exited with code 3/,
                 status.dig("crash_loop", "what"))
    wait_for("it not to be ready") { ask(admin_path, "/readyz").status == 503 }
    assert_includes ask(admin_path, "/readyz").body, "crashing"
    assert_match(/^highball_app_phase\{app=.*phase="crashing"\} 1$/, ask(admin_path, "/metrics").body)
    assert_match(/^highball_crash_loop_deaths\{.*\} [1-9]/, ask(admin_path, "/metrics").body)
    doctor, = run_command("doctor", app)
    assert_match(/crash_loop.*workers died/, doctor)
    text, checked = run_command("status", "--check", app)
    assert_match(/crash loop +\d+ workers died/, text)
    refute_predicate checked, :success?

    FileUtils.rm(File.join(app, "crash"))
    output, restarted = run_command("restart", app)
    assert_predicate restarted, :success?, output
    assert_equal 200, server.get("/").status
    assert_equal ["serving", nil], server.status.values_at("phase", "crash_loop")
    assert_equal 200, ask(admin_path, "/readyz").status
  end

  def test_a_new_version_whose_workers_die_soon_is_taken_back
    app, = crashing(nil)
    server = serve(app, workers: 2)
    File.write(File.join(app, "crash"), "sleep 1; exit!(3)")
    output, restarted = run_command("restart", app)
    refute_predicate restarted, :success?, output
    assert_match(/of the new version died while serving: exited with code 3/, output)
    wait_for("the old version") do
      server.status["workers"].map { |one| one.values_at("generation", "state") } == [[1, "serving"]] * 2
    end
    assert_equal 200, server.get("/").status
    refute server.status["crash_loop"]
  end

  # One bad request costs one worker, and the others nothing.
  def test_requests_that_kill_workers_now_and_then_delay_nothing
    app, = crashing(nil)
    server = serve(app, workers: 4)
    outcomes = Load.during(server, clients: 2) do |load|
      3.times do
        assert_equal 502, server.request("POST", "/die", {}, "x", within: 20).status
        wait_for("the other worker", within: 5) { server.worker_pids.length == 4 }
      end
      wait_for("500 answers") { load.count >= 500 }
    end
    assert_equal [200], outcomes.map(&:result).uniq - [502]
    assert_operator outcomes.map(&:seconds).max, :<, 5
  end

  # One of several does not put the application into a crash loop.
  def test_others_that_last_keep_it_ready
    app, admin_path = crashing(<<~RUBY)
      lock = File.open("once", "a")
      lock.flock(File::LOCK_EX | File::LOCK_NB) ? sleep : sleep(1)
      exit!(3)
    RUBY
    server = serve(app, "--admin", "unix:#{admin_path}", workers: 2)
    wait_for_loop(server)
    wait_for("a lasting worker", within: 30) { ask(admin_path, "/readyz").status == 200 }
    assert_equal 200, server.get("/").status
  end

  def test_an_application_that_sleeps_is_not_booted_in_a_loop_by_requests
    app, = crashing("sleep 1; exit!(3)")
    server = serve(app, "--sleep-after", "1s")
    wait_for_loop(server) { server.get("/", within: 30) }
    assert_operator server.log.scan("booting").length, :<, 12
  end

  private

  # The folder of an application whose workers do that a moment after their start, and a path for health checks.
  def crashing(way)
    app = folder_with("config.ru" => APP)
    File.write(File.join(app, "crash"), way) if way
    [app, File.join(folder_with, "admin.sock")]
  end

  def assert_crash_loop(way, ending)
    app, = crashing(way)
    server = serve(app, workers: 2)
    wait_for_loop(server)
    # With a spawner, a death may be noticed before the spawner has reported how the process ended.
    wait_for("a death with its ending", within: 40) { ending.match?(server.status.dig("crash_loop", "what")) }
    wait_for("more deaths") { server.status.dig("crash_loop", "deaths") >= 5 }
    lines = server.log.lines.grep(/crash loop: |the worker died|WARN .*it closed/)
    assert_equal 1, lines.grep(/crash loop: /).length, lines.join
    assert_includes 4..5, lines.length, lines.join # the deaths that make a loop, and the loop
    assert_match(/ERROR.*deaths=3 .*\n(.*\n){0,2} +remedy: ./, server.log)
    crashes = server.status["crash_loop"]
    # Three are free, and then one of two places in five seconds.
    assert_operator crashes["deaths"], :<=, 6 + crashes["seconds"]
  end

  def wait_for_loop(server)
    wait_for("the crash loop", within: 40) do
      yield if block_given?
      server.status["crash_loop"]
    end
  end

  def ask(path, target)
    HttpConnection.unix(path).use { |connection| connection.get(target, { "Host" => "localhost" }) }
  end

  def run_command(command, *arguments)
    HighballServer.run(command, *arguments, within: 60)
  end
end
