# frozen_string_literal: true

# marks: few (it needs a CPU for itself)

require "json"
require_relative "../../support/upgrade_test_case"

# While workers serve, the next version boots with a lower priority. Its workers have the usual one.
class PriorityTest < UpgradeTestCase
  # GET / answers with the priorities (nice(1)) of the boot, of the worker's main thread and of the thread that serves,
  # and with what else a forked process might take over from the thread that forked it.
  APP = <<~'RUBY'
    require "json"
    BOOT = Process.getpriority(Process::PRIO_PROCESS, 0)
    refuses = -> { File.exist?(File.join(__dir__, "refuse")) }
    Process.singleton_class.prepend(Module.new { define_method(:_fork) { refuses.call ? raise("no fork") : super() } })
    at_exit { File.write(File.join(__dir__, "exits"), "#{Process.pid}\n", mode: "a") }
    run lambda { |_env|
      seen = { boot: BOOT, main: Process.getpriority(Process::PRIO_PROCESS, Process.pid),
               serves: Process.getpriority(Process::PRIO_PROCESS, 0), comm: File.read("/proc/self/comm").chomp,
               title: File.read("/proc/self/cmdline").delete("\0"), threads: Thread.list.size,
               pid: Process.pid }
      [200, { "content-type" => "application/json" }, [seen.to_json]]
    }
  RUBY
  USUAL = Process.getpriority(Process::PRIO_PROCESS, 0)
  # The second where CPUs are idle while it boots.
  LOWER = [5, 10].map { |more| [USUAL + more, 19].min }
  # Its first version takes no time. A later one needs a second of CPU time.
  SLOW = <<~'RUBY'
    now = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
    begun = now.call
    nil until now.call > begun + 1 || !File.exist?(File.join(__dir__, "slow"))
    sleep if File.exist?(File.join(__dir__, "hangs"))
    run ->(_env) { [200, {}, [File.exist?(File.join(__dir__, "slow")) ? "slow" : "fast"]] }
  RUBY

  def test_the_first_version_boots_as_usual_and_the_next_ones_do_not
    server = serve_app
    assert_equal [USUAL, USUAL, USUAL], priorities(server)
    2.times do
      first = seen(server)
      command_output(server, "restart")
      assert_lower(server)
      now = seen(server)
      refute_equal first["pid"], now["pid"]
      assert_equal first.values_at("comm", "threads"), now.values_at("comm", "threads")
      assert_match(/\Ahighball worker \d+: /, now["title"])
    end
  end

  def test_workers_that_die_are_forked_with_the_usual_priority
    server = serve_app
    command_output(server, "restart")
    3.times do
      killed = server.worker_pids.first
      HighballServer.kill(killed)
      wait_for("another worker") { (server.worker_pids - [killed]).any? && server.settled? }
      assert_lower(server)
    end
  end

  def test_a_refork_of_such_a_version
    server = serve_app
    command_output(server, "restart")
    command_output(server, "refork")
    assert_lower(server)
    command_output(server, "restart")
    assert_lower(server)
  end

  def test_at_exit_runs_once_in_each_worker
    server = serve_app
    command_output(server, "restart")
    workers = server.worker_pids
    server.stop
    exits = File.readlines(File.join(@app, "exits")).map(&:to_i)
    assert_equal exits.uniq, exits
    assert_empty workers - exits
  end

  def test_an_exception_before_a_fork_is_reported
    server = serve_app
    command_output(server, "restart")
    FileUtils.touch(File.join(@app, "refuse"))
    HighballServer.kill(server.worker_pids.first)
    wait_for("the report") { server.log.include?("no fork") }
    FileUtils.rm(File.join(@app, "refuse"))
    wait_for("the next fork") { server.worker_pids.any? && server.settled? }
    assert_lower(server)
  end

  def test_without_preloading_workers_boot_as_usual
    server = serve_app("--preload", "off")
    command_output(server, "restart")
    assert_equal [USUAL, USUAL, USUAL], priorities(server)
  end

  # Beside a process that computes all the time, on the same CPU, such a boot takes four times as long.
  def test_waiting_for_a_cpu_does_not_count_as_boot_time
    on_a_busy_cpu do |server|
      FileUtils.touch(File.join(@app, "slow"))
      began = Deadline.now
      command_output(server, "restart")
      assert_operator Deadline.now - began, :>, 2, "the boot had the CPU for itself"
      assert_equal "slow", server.get("/").body
    end
  end

  def test_a_boot_that_hangs_on_a_busy_cpu_is_given_up
    on_a_busy_cpu do |server|
      FileUtils.touch(File.join(@app, "hangs"))
      began = Deadline.now
      assert_includes highball_fails("restart", *server.which, within: 60), "the boot takes longer than boot_timeout"
      assert_operator Deadline.now - began, :<, 20
      assert_equal "fast", server.get("/").body
    end
  end

  private

  def on_a_busy_cpu
    @app = folder_with("config.ru" => SLOW)
    cpu = `taskset -pc #{Process.pid}`.chomp[/\d+\z/]
    server = serve(@app, "--boot-timeout", "2s", env: { "RACK_ENV" => "production" })
    server.pids.each { |pid| system("taskset", "-acp", cpu, pid.to_s, out: File::NULL) }
    burner = Process.spawn("taskset", "-c", cpu, "timeout", "60", RbConfig.ruby, "-e", "loop {}")
    yield server
  ensure
    Process.kill(:TERM, burner) if burner
    Process.wait(burner) if burner
  end

  def assert_lower(server)
    boot, *others = priorities(server)
    assert_includes LOWER, boot
    assert_equal [USUAL, USUAL], others
  end

  def serve_app(*options)
    @app = folder_with("config.ru" => APP)
    serve(@app, "--refork-after", "off", *options, env: { "RACK_ENV" => "production" })
  end

  def seen(server) = JSON.parse(server.get("/").body)
  def priorities(server) = seen(server).values_at("boot", "main", "serves")
end
