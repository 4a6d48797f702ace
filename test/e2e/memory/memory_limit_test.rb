# frozen_string_literal: true

# marks: few (it needs the time that it has before the memory is exhausted)

require_relative "../../support/e2e_test"
require_relative "../../support/memory_cgroup"
require_relative "../../support/steady_load"

# Workers that get too much memory are replaced before the kernel kills one, and no request fails for it.
class MemoryLimitTest < E2ETest
  # Keeps 1 MiB a request; `/keep?50` keeps 50 MiB, `/child?50` has a child keep them.
  APP = <<~'RUBY'
    KEPT = []
    run lambda { |env|
      count = env["QUERY_STRING"].to_i
      case env["PATH_INFO"]
      when "/leak" then KEPT << ("x" * (1 << 20))
      when "/keep" then KEPT << ("x" * (count << 20))
      when "/keep_slowly"
        count.times do
          KEPT << ("x" * (1 << 20))
          sleep 0.05
        end
      when "/child"
        reader, writer = IO.pipe
        fork do
          $0 = "child of a worker"
          kept = "y" * (count << 20)
          writer.write("k")
          sleep 60
          kept.clear
        end
        reader.read(1)
      end
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
  RUBY

  def teardown
    super
  ensure
    @cgroup&.remove
  end

  def test_a_leak_meets_no_oom_killer
    assert_leaks_safely(20)
  end

  def test_a_leak_meets_no_oom_killer_for_two_minutes
    very_long
    assert_leaks_safely(120)
  end

  # So the test above can fail.
  def test_without_limits_the_kernel_kills
    server = serve_in_cgroup(256, "--memory-budget", "none")
    outcomes = SteadyLoad.run(server, "/leak", per_second: 40, seconds: 15)
    assert_operator @cgroup.oom_kills, :>, 0
    assert_operator outcomes.length, :>, 1, "requests fail then"
    wait_for("the report") { server.status["apps"].first.dig("memory", "oom_kills").positive? }
    assert_match(/the worker died.*OOM killer/m, server.log)
    refute_match(/replacing the worker/, server.log)
  end

  def test_a_worker_over_its_limit_is_replaced
    server = serve_app("--memory-limit", "100m")
    old = server.worker_pids
    3.times { assert_equal 200, server.get("/keep?40").status }
    wait_for("another worker", within: 30) { server.settled? && (server.worker_pids & old).empty? }
    assert_match(/which uses too much memory: a new one starts first/, server.log)
    assert_match(/limit=memory_limit worker_mib=1\d\d bytes_mib=1\d\d limit_mib=100/, server.log)
    memory = server.status["apps"].first["memory"]
    assert_equal [100 * MIB, 1, 0, nil], memory.values_at("worker_limit_bytes", "replaced", "oom_kills", "problem")
    output, = HighballServer.run("status", *server.which)
    assert_match(/each worker at most 100.0 MiB; 1 worker replaced for their memory/, output)
  end

  def test_requests_of_a_replaced_worker_finish
    server = serve_app("--memory-limit", "80m")
    slow = Thread.new { server.get("/keep_slowly?100", within: 60) }
    wait_for("the replacement", within: 30) { server.log.include?("replacing the worker") }
    assert_equal 200, slow.value.status
  end

  def test_what_a_child_keeps_is_its_workers
    server = serve_app("--memory-limit", "100m")
    old = server.worker_pids
    assert_equal 200, server.get("/child?150").status
    wait_for("another worker", within: 30) { (server.worker_pids & old).empty? }
  ensure
    server&.pids&.each { |pid| HighballServer.kill(pid) if ProcessFacts.command_line(pid).start_with?("child of") }
  end

  def test_a_limit_that_new_workers_exceed_is_called_too_small_once
    at_boot = "KEPT_AT_BOOT = []\nHighball.after_fork { KEPT_AT_BOOT << ('x' * (30 << 20)) }\n"
    server = serve_app("--memory-limit", "16m", app: at_boot + APP)
    problem = wait_for("the report", within: 30) { server.status["apps"].first.dig("memory", "problem") }
    old = wait_for("the worker") { server.settled? && server.worker_pids }
    assert_match(/MiB by memory_limit, and new workers do not change that: the limit is too small/, problem)
    10.times { assert_equal 200, server.get("/").status }
    assert_equal old, server.worker_pids
    assert_equal 1, server.log.scan("the limit is too small").length
    assert_equal 1, server.log.scan("replacing the worker").length
  end

  def test_what_grows_as_soon_as_it_serves_is_not_replaced_again_and_again
    server = serve_app("--memory-limit", "80m")
    outcomes = SteadyLoad.run(server, "/keep?30", per_second: 5, seconds: 15)
    assert_equal [200], outcomes.keys
    replaced = server.status["apps"].first.dig("memory", "replaced")
    assert_includes 1..3, replaced, server.log
    assert_match(/leaks as soon as it serves/, server.status["apps"].first.dig("memory", "problem"))
  end

  def test_what_is_allocated_faster_than_anyone_looks_costs_a_worker_and_not_the_server
    server = serve_in_cgroup(256)
    begin
      server.get("/keep?400", within: 30)
    rescue EOFError, SystemCallError
      flunk "the server was killed"
    end
    assert_operator @cgroup.oom_kills, :>, 0
    wait_for("the report") { server.log.include?("OOM killer") }
    assert_equal 200, server.get("/").status
    assert_predicate server, :running?
  end

  def test_a_leak_of_one_application_costs_others_nothing
    folder = folder_with("leaky/config.ru" => APP, "large/config.ru" => "#{APP}KEPT << ('x' * (40 << 20))\n")
    File.write("#{folder}/highball.toml", <<~TOML)
      [[app]]
      path = "leaky"
      hosts = ["leaky.test"]
      [[app]]
      path = "large"
      hosts = ["large.test"]
    TOML
    server = serve_in_cgroup(320, folder: folder, host: "large.test")
    others = pids_of(server, "large")
    SteadyLoad.run(LeakyClient.new(server), "/leak", per_second: 40, seconds: 12).then do |outcomes|
      assert_equal [200], outcomes.keys
    end
    assert_equal others, pids_of(server, "large")
    assert_operator app(server, "leaky").dig("memory", "replaced"), :>, 0
    assert_equal 0, @cgroup.oom_kills
  end

  def test_the_kernel_is_asked_to_take_a_worker_first
    server = serve_app
    assert_equal([100, 200], scores_above_the_servers(server))
    server.signal("URG")
    wait_for("the refork", within: 30) { server.status["refork"]&.fetch("state") == "done" && server.settled? }
    assert_equal([100, 200], scores_above_the_servers(server))
  end

  # Asks the leaky application.
  LeakyClient = Struct.new(:server) do
    def request(method, target, headers, body, **options)
      server.request(method, target, headers.merge("Host" => "leaky.test"), body, **options)
    end
  end

  private

  def assert_leaks_safely(seconds)
    server = serve_in_cgroup(256)
    outcomes = nil
    peak = @cgroup.peak_during do
      outcomes = SteadyLoad.run(server, "/leak", per_second: 20, seconds: seconds)
    end
    assert_equal({ 200 => 20 * seconds }, outcomes)
    assert_equal 0, @cgroup.oom_kills
    assert_operator peak, :<, @cgroup.limit_bytes
    assert_operator server.status["apps"].first.dig("memory", "replaced"), :>, 0
    assert_match(/the memory of the machine or container/, server.log)
  end

  def serve_app(*options, app: APP, **settings)
    serve(folder_with("config.ru" => app), *options, **settings)
  end

  # A server with two workers an application in a cgroup with this much memory, in MiB.
  def serve_in_cgroup(mib, *options, folder: folder_with("config.ru" => APP), host: "localhost")
    @cgroup = MemoryCgroup.make(mib * MIB) or skip "no memory cgroup can be made here: it needs root"
    command = [*@cgroup.through, HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production",
               "-w", "2", "-t", "3", *options, folder]
    server = HighballServer.new(folder, command: command)
    @servers << server
    wait_for("the server", within: HighballServer::SERVES_WITHIN) do
      server.running? && server.port && server.get("/", { "Host" => host })&.status == 200
    rescue SystemCallError, EOFError
      false
    end
    server
  end

  # Of its mold, and of a worker.
  def scores_above_the_servers(server)
    score = ->(pid) { File.read("/proc/#{pid}/oom_score_adj").to_i }
    [server.mold_pid, server.worker_pids.first].map { |pid| score[pid] - score[server.server_pid] }
  end

  def app(server, name) = server.full_status["apps"].find { |app| app["name"] == name }
  def pids_of(server, name) = app(server, name)["workers"].map { |worker| worker["pid"] }
end
