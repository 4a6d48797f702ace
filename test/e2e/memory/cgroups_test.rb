# frozen_string_literal: true

require_relative "../../support/cgroup_of_unit"
require_relative "../../support/limited_tenants"
require_relative "../../support/spawner_test_case"
require_relative "../../support/user_mode_linux"

# Each application has a cgroup with its limits. Where this machine's cgroups have none, these tests run in User-mode
# Linux.
class CgroupsTest < SpawnerTestCase
  include LimitedTenants

  SERVER = "highball.server"
  # User-mode Linux takes long to give memory.
  SLOWLY = 60

  unless CgroupOfUnit.why_not
    def setup
      super
      @unit = CgroupOfUnit.new
    end

    def teardown
      super
      @unit.remove
    end
  end

  def self.in_cgroup(name, &test)
    define_method("test_#{name}", &test) unless CgroupOfUnit.why_not
  end

  # What `highball doctor` says of limits. On a slow machine, the application has had to wait long enough for a warning.
  LIMITS_IN_USE = /memory \d+ of 300 MiB; CPU 0\.2 cores, throttled \d+% of the time/
  MUCH_THROTTLED = /because of cpu_max, 0\.2 CPUs, processes of the application had to wait in \d+% of the time/

  # What User-mode Linux does in a minute, beside other tests. `bin/test --full` has it do all.
  USUAL = /all_processes_of|are_seen|was_killed|without_limits/

  if CgroupOfUnit.why_not
    def test_in_user_mode_linux
      long
      very_long if ENV["HIGHBALL_SERVER_USER"] # the same again
      why_not = UserModeLinux.why_not
      skip "#{CgroupOfUnit.why_not}; #{why_not}" if why_not
      env = ENV.to_h.slice("HIGHBALL_BIN", "HIGHBALL_LIB", "HIGHBALL_SERVER_USER", "HIGHBALL_TEST_LEVEL", "LANG")
      usual = ["-n", "/#{USUAL.source}/"] unless LEVEL == "full"
      command = [RbConfig.ruby, "-Ilib", "-Itest", __FILE__, *(ENV["HIGHBALL_UML_TEST"]&.split || usual)]
      output, passed = UserModeLinux.run(*command, env: env)
      assert passed, output
      assert_match(/\b[1-9]\d* runs, [1-9]\d* assertions, 0 failures, 0 errors, 0 skips/, output)
    end

    # This machine's cgroups have no such limits.
    def test_limits_that_cannot_be_kept_are_said
      problem = /is not available in |there is no version 2/
      server = serve_tenants(entries: { ATTACKER => "cpu_max = 0.5\n" }, top: admin_line)
      assert_not_kept(server, problem)
      assert_equal({ 'limit_enforced{app="attacker",limit="cpu_max"}' => 0 }, app_metrics("limit_enforced"))
      assert_equal({ 'cpu_limit_cores{app="attacker"}' => 0.5 }, app_metrics("cpu"))
      assert_match(/^  attacker .* – of 0\.5 .*not enforced: cpu_max$/, top(server))
      server.stop
      checks = examine_attacker
      assert_match(/would not enforce cpu_max for a server started like .*(#{problem})/,
                   checks.dig("limits_not_kept", "what"))
      assert_match(/Delegate=yes/, checks.dig("limits_not_kept", "remedy"))
    end
  end

  in_cgroup :all_processes_of_an_application_are_in_its_cgroup_and_stay do
    server = serve_limited(ATTACKER => "cpu_max = 0.5\nmemory_max = '300m'\n")
    daemon = ask_attacker(server, "/fork").body.to_i
    worker = ask_attacker(server).body.to_i
    assert_equal [@attackers, @victims, SERVER].sort, @unit.children
    assert_empty [daemon, worker] - @unit.pids(@attackers)
    assert_includes @unit.pids(@victims), victims_worker(server)
    own = ProcessFacts.tree(server.pid).select { |pid| pid == server.pid || OwnProcesses.role(pid) }
    assert_empty own - @unit.pids(SERVER)
    assert_equal ["50000 100000", (300 * MIB).to_s], limits_of(@attackers)
    assert_equal ["max 100000", "max"], limits_of(@victims)
    status = kernel_limits(server)
    assert_equal [0.5, 300 * MIB, nil], status.values_at("cpu_max", "memory_max_bytes", "problem")
    assert_operator status["memory_bytes"], :>, MIB
    assert_empty status["not_kept"]
    assert_attacker_stays(server)
    Process.kill("KILL", daemon)
    server.stop
    assert_empty @unit.children
    assert_equal "", @unit.read("cgroup.subtree_control")
  end

  in_cgroup :a_burning_tenant_leaves_cpus_to_others do
    server = serve_limited(ATTACKER => "cpu_max = 0.2\n")
    daemons = ask_attacker(server, "/burn", within: SLOWLY).body.split.map(&:to_i)
    before = [@unit.number(@attackers, "cpu.stat", "usage_usec"), Deadline.now]
    20.times { assert_victim_serves(server) }
    wait_for("a pause") { @unit.number(@attackers, "cpu.stat", "nr_throttled") > 20 }
    used = @unit.number(@attackers, "cpu.stat", "usage_usec") - before.first
    seconds = Deadline.now - before.last
    # Up to two periods are begun, of 20 ms each.
    assert_operator used, :<, (seconds * 0.2 * 1_000_000) + 60_000, "CPUs of #{seconds} s"
    assert_operator kernel_limits(server)["throttled_ms"], :>, 100
    daemons.each { |pid| Process.kill("KILL", pid) }
  end

  # In metrics, in `highball top` and in `highball doctor`, for the application that has limits.
  in_cgroup :limits_are_seen_with_their_use do
    limits = "cpu_max = 0.2\nmemory_max = '300m'\n"
    server = serve_limited(ATTACKER => limits)
    before = app_metrics
    daemons = ask_attacker(server, "/burn", within: SLOWLY).body.split.map(&:to_i)
    name = 'cpu_throttled_periods_total{app="attacker"}'
    wait_for("a pause") { app_metrics.fetch(name) > before.fetch(name) + 5 }
    assert_limits_in_metrics(@unit.read(@attackers, "memory.current").to_i)
    assert_victim_serves(server)
    shown = /^  attacker +\d+ of 300 MiB +0\.\d of 0\.2 +\d+% +0\n\n/
    assert_match(/  LIMITS .*\n#{shown}/, top(server))
    daemons.each { |pid| Process.kill("KILL", pid) }
    checks = examine_attacker.slice("limits", "cpu_throttled").values
    assert_match(/#{LIMITS_IN_USE}|#{MUCH_THROTTLED}/, checks.dig(0, "what"))
    server.stop
    assert_equal "the kernel can enforce cpu_max and memory_max", examine_attacker.dig("limits", "what")
  end

  in_cgroup :a_tenants_file_does_not_set_limits do
    files = { "config.ru" => APP, "config/highball.toml" => "cpu_max = 'none'\n" }
    server = serve_limited({ ATTACKER => "cpu_max = 0.5\n" }, attacker_app(files))
    assert_match(/`cpu_max` decides what Highball does with its own rights/, server.log)
    refute_equal 200, ask_attacker(server).status
    assert_victim_serves(server)
  end

  in_cgroup :a_worker_is_replaced_before_the_kernel_kills_it do
    server = serve_limited(ATTACKER => "memory_max = '160m'\n")
    old = ask_attacker(server).body
    # Beyond 136 MiB the worker is replaced, with what the application has besides.
    [60, *[12] * 7].each do |mib|
      seen = memory_seen(server)
      break if ask_attacker(server, "/keep?#{mib}", within: SLOWLY).body != old

      wait_for("a look") { memory_seen(server) > seen || ask_attacker(server).body != old }
    end
    wait_for("another worker") { ask_attacker(server).body != old }
    assert_match(/limit=memory_max/, server.log)
    assert_equal 0, kernel_limits(server)["oom_kills"]
  end

  in_cgroup :beyond_its_memory_the_kernel_kills_the_tenants_process_alone do
    server = serve_limited(ATTACKER => "memory_max = '80m'\n")
    victim = victims_worker(server)
    assert_equal 502, ask_attacker(server, "/keep?100", within: SLOWLY).status
    wait_for("a worker") { ask_attacker(server).status == 200 }
    assert_operator kernel_limits(server)["oom_kills"], :>=, 1
    assert_match(/OOM killer/, server.log)
    killed = %w[oom_kills memory_limit_hits].map { |one| app_metrics.fetch("#{one}_total{app=\"attacker\"}") }
    assert(killed.all?(&:positive?), killed.inspect)
    assert_match(/has killed \d+ processes .* memory_max, 80 MiB/, examine_attacker.dig("out_of_memory", "what"))
    assert_equal victim, victims_worker(server)
  end

  # By then the application has more than the new limit, in processes that the server does not know.
  in_cgroup :a_limit_that_is_lowered_counts_at_once_and_for_the_tenant_alone do
    server = serve_limited(ATTACKER => "memory_max = '240m'\n")
    daemons = Array.new(3) { ask_attacker(server, "/hold?40", within: SLOWLY).body.to_i }
    wait_for("the memory", within: SLOWLY) { @unit.read(@attackers, "memory.current").to_i > 140 * MIB }
    victim = victims_worker(server)
    reload_with(server, ATTACKER => "memory_max = '100m'\n")
    wait_for("the end of a daemon", within: SLOWLY) { (daemons - @unit.pids(@attackers)).any? }
    wait_for("the new limit", within: SLOWLY) { @unit.read(@attackers, "memory.current").to_i <= 100 * MIB }
    assert_equal victim, victims_worker(server)
    wait_for("a worker of the attacker's", within: SLOWLY) { ask_attacker(server).status == 200 }
    (daemons & @unit.pids(@attackers)).each { |pid| Process.kill("KILL", pid) }
  end

  in_cgroup :what_a_puma_configuration_starts_is_in_the_cgroup_as_well do
    daemon = "Process.wait(fork { Process.setsid; File.write('daemon', fork { sleep }.to_s) && exit!(0) })"
    app = attacker_app("config.ru" => APP, "config/puma.rb" => "#{daemon} unless File.exist?('daemon')\n")
    File.chmod(0o777, app)
    server = serve_limited({ ATTACKER => "cpu_max = 0.5\n" }, app)
    assert_equal 200, ask_attacker(server).status, server.log
    daemon = File.read(File.join(app, "daemon")).to_i
    assert_includes @unit.pids(@attackers), daemon
    Process.kill("KILL", daemon)
  end

  in_cgroup :limits_follow_the_configuration do
    server = serve_limited(ATTACKER => "cpu_max = 0.5\n")
    worker = ask_attacker(server).body
    reload_with(server, ATTACKER => "cpu_max = 0.8\nmemory_max = '500m'\n")
    wait_for("the new limits") { limits_of(@attackers) == ["80000 100000", (500 * MIB).to_s] }
    reload_with(server, {})
    wait_for("no limit") { limits_of(@attackers) == ["max 100000", "max"] }
    assert_equal worker, ask_attacker(server).body
  end

  in_cgroup :the_cgroup_of_a_removed_application_is_removed do
    server = serve_limited(ATTACKER => "cpu_max = 0.5\n")
    ask_attacker(server)
    path = File.join(@place, "highball.toml")
    File.write(path, File.read(path).sub(/\[\[app\]\]\npath = '#{@victim}'.*/m, ""))
    server.signal("HUP")
    wait_for("the end of the cgroup") { !@unit.children.include?(@victims) }
    assert_equal 200, ask_attacker(server).status
  end

  in_cgroup :a_server_that_was_killed_leaves_nothing_in_the_way do
    server = serve_limited(ATTACKER => "cpu_max = 0.5\n")
    ask_attacker(server)
    Process.kill("KILL", server.pid)
    server.wait
    wait_for("the end of all") { @unit.children.all? { |child| @unit.pids(child).empty? } }
    assert_includes @unit.children, @attackers
    server = serve_limited(VICTIM => "cpu_max = 0.7\n")
    assert_includes @unit.pids(@victims), victims_worker(server)
    assert_equal "70000 100000", limits_of(@victims).first
    next unless front_of(server)

    Process.kill("KILL", front_of(server)) # the spawner tidies up
    server.wait
    assert_empty @unit.children
  end

  in_cgroup :a_hot_restart_keeps_the_limits do
    server = serve_limited(ATTACKER => "cpu_max = 0.5\n")
    old = ask_attacker(server).body.to_i
    highball("upgrade", *server.which, env: server_env, within: 90)
    new = nil
    wait_for("a worker of the new server") { (new = ask_attacker(server).body.to_i) != old }
    assert_includes @unit.pids(@attackers), new
    wait_for("the end of the old one") { !ProcessFacts.alive?(old) }
    assert_equal ["50000 100000", "max"], limits_of(@attackers)
    server.stop
    assert_empty @unit.children
  end

  in_cgroup :without_limits_there_are_no_cgroups do
    server = serve_limited({})
    assert_victim_serves(server)
    assert_empty @unit.children
    assert_includes @unit.pids("."), server.pid
  end

  in_cgroup :beside_other_processes_limits_are_not_kept do
    other = Process.spawn(*@unit.through, "sleep", "100")
    wait_for("the other process") { @unit.pids(".").include?(other) }
    server = serve_limited(ATTACKER => "cpu_max = 0.5\n")
    assert_not_kept(server, /other processes are in the cgroup .* \(#{other}\)/)
    assert_empty @unit.children
    assert_includes @unit.pids("."), ask_attacker(server).body.to_i
  ensure
    Process.kill("KILL", other)
    Process.wait(other)
  end

  # As with `User=` and `Delegate=yes` of systemd: the server and the application are one user's.
  in_cgroup :a_user_to_whom_the_cgroup_is_delegated_may_set_limits do
    @unit.give_to(ATTACKER)
    app = attacker_app("config.ru" => APP)
    as_user = ["setpriv", "--reuid", ATTACKER, "--regid", Etc.getpwnam(ATTACKER).gid.to_s, "--clear-groups"]
    state = Dir.mktmpdir("highball-control", "/tmp").tap { |folder| @folders << folder }
    FileUtils.chown(ATTACKER, nil, state)
    env = { "HIGHBALL_LIB" => lib, "HIGHBALL_CONTROL" => state, "HIGHBALL_SERVER_USER" => nil }
    server = serve_many(app, "--cpu-max=0.5", through: [*@unit.through, *as_user], env: env)
    worker = server.get("/").body.to_i
    name = @unit.of_app(app)
    assert_includes @unit.pids(name), worker
    assert_includes @unit.pids(SERVER), server.pid
    assert_equal "50000 100000", limits_of(name).first
    assert_equal "done", server.get("/write?#{@unit.path(SERVER, 'cgroup.procs')}").body, "it is the same user's"
    server.stop
    assert_empty @unit.children
  end

  private

  # It leaves its cgroup for no other, and changes no limit.
  def assert_attacker_stays(server)
    own = @unit.path(@attackers)
    places = [own, @unit.folder, @unit.path(SERVER), @unit.path(@victims), CgroupOfUnit::MOUNT]
    files = places.map { |place| "#{place}/cgroup.procs" } + %w[cpu.max memory.max].map { |file| "#{own}/#{file}" }
    files.each { |file| assert_equal "Errno::EACCES", ask_attacker(server, "/write?#{file}").body, file }
    assert_equal "Errno::EACCES", ask_attacker(server, "/make?#{own}/own").body
    assert_includes @unit.pids(@attackers), ask_attacker(server).body.to_i
  end
end
