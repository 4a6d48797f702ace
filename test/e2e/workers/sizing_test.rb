# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/steady_load"

# The number of workers follows the load, where the configuration leaves it to that.
class SizingTest < E2ETest
  # `/sleep` waits for something else for 20 ms, `/compute` takes 20 ms of a CPU.
  APP = <<~'RUBY'
    KEPT = []
    run lambda { |env|
      case env["PATH_INFO"]
      when "/sleep" then sleep 0.02
      when "/long" then sleep 2
      when "/compute"
        until_cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.02
        nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < until_cpu
      end
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
  RUBY
  # Files of cgroups, version 2, as a container has them.
  LIMITS = "mount -t tmpfs none /sys/fs/cgroup && echo 150000 100000 > /sys/fs/cgroup/cpu.max && " \
           "echo 4294967296 > /sys/fs/cgroup/memory.max && exec"
  ALONE = ["unshare", "--mount", "--propagation", "private"].freeze

  def test_a_load_makes_the_pool_grow_and_status_says_why
    server = serve_app("--max-workers", "3", threads: 1)
    assert_equal({ "min" => 1, "max" => 3 }, sizing(server).slice("min", "max"))
    under_load(server, "/sleep", per_second: 120) do
      wait_for("more workers") { server.status["workers_wanted"] == 3 && server.settled? }
    end
    assert_match(/worker count changed before=\d workers=\d because="(requests wait in the queue|\d+% of the threads)/,
                 server.log)
    assert_match(/^\d to 3: /, sizing(server)["decided"])
    output, = HighballServer.run("status", *server.which)
    assert_match(/^workers +3 of 1\.\.3: \S+ .*GiB\n +\d to 3: .* \(\d+s ago\)$/, output)
  end

  def test_an_idle_pool_shrinks_and_no_request_fails
    long
    server = serve_app("--max-workers", "3", "--min-workers", "1")
    server.signal("TTIN") # an operator's order counts at once, and not for ever
    wait_for("another worker") { server.settled? && server.worker_pids.length >= 2 }
    wait_for("one worker", within: 240) do
      assert_equal 200, server.get("/").status
      server.status["workers_wanted"] == 1 && server.settled?
    end
    assert_match(/worker count changed before=\d workers=1 because="fewer were enough for \d+ s/, server.log)
    outcomes = SteadyLoad.run(server, "/sleep", per_second: 100, seconds: 3)
    assert_equal [200], outcomes.keys
  end

  def test_a_container_with_one_and_a_half_cpus_and_4_gib
    skip "needs root, to mount file systems" unless Process.uid.zero?
    skip "file systems cannot be mounted here" unless system(*ALONE, "sh", "-c", "#{LIMITS} true",
                                                             %i[out err] => File::NULL)
    server = serve_in_container
    wait_for("a look at the memory") { sizing(server)["memory_bytes"] }
    output, = HighballServer.run("status", *server.which)
    assert_match(/^workers +2 of 1\.\.3: cpu\.max 1\.5, 4 GiB$/, output)
    assert_equal ["cpu.max 1.5", 4 << 30], sizing(server).values_at("cpus", "memory_bytes")
  end

  def test_the_pool_does_not_grow_where_the_memory_does_not_suffice
    fat = "#{APP}\nKEPT_AT_START = []\nHighball.after_fork { KEPT_AT_START << ('x' * (40 << 20)) }\n"
    server = serve_app("--max-workers", "4", "--memory-budget", "150m", threads: 1, app: fat, start: 1)
    wait_for("a look at the memory") { server.status["workers"].all? { |worker| worker["memory_bytes"] } }
    under_load(server, "/sleep", per_second: 120) do
      wait_for("the reason") { sizing(server)["hindered"] }
    end
    assert_match(/a worker takes \d+ MiB, and \d+ MiB are left/, sizing(server)["hindered"])
    assert_match(/none can be added.*\n? +?.*because.*a worker takes/, server.log)
    assert_operator server.status["workers_wanted"], :<=, 2
    assert_equal 200, server.get("/").status
  end

  def test_workers_that_do_not_come_up_make_the_pool_grow_no_further
    broken = "Highball.after_fork { raise 'broken' if File.exist?('broken') }\n"
    server = serve_app("--max-workers", "8", threads: 1, app: broken + APP, start: 1)
    FileUtils.touch(File.join(server.app, "broken"))
    under_load(server, "/sleep", per_second: 120) do
      wait_for("the attempt") { server.log.include?("worker count changed") }
      wait_for("several failures") { server.log.scan("broken").length >= 3 }
    end
    assert_equal 1, server.log.scan("worker count changed").length
    assert_equal 200, server.get("/").status
    FileUtils.rm(File.join(server.app, "broken"))
    wait_for("the workers") { server.settled? }
  end

  def test_a_fixed_number_stays_what_it_is
    server = serve(folder_with("config.ru" => APP), workers: 1, threads: 1)
    outcomes = SteadyLoad.run(server, "/sleep", per_second: 100, seconds: 3)
    assert_equal [200], outcomes.keys
    assert_nil server.status["sizing"]
    assert_equal 1, server.status["workers_wanted"]
    output, = HighballServer.run("status", *server.which)
    assert_match(/^workers +1 wanted$/, output)
  end

  def test_a_range_that_is_none_is_refused
    output, status = HighballServer.run("serve", "-e", "production", "--min-workers", "4", "--max-workers", "2",
                                        folder_with("config.ru" => APP))
    refute_predicate status, :success?
    assert_match(/min_workers is 4, and max_workers is 2, which is less/, output)
  end

  private

  # `start`: the workers at the start, of which there is one for each CPU otherwise.
  def serve_app(*options, threads: 3, app: APP, start: nil)
    taskset = start ? ["taskset", "-c", "0"] : []
    folder = folder_with("config.ru" => app)
    command = [*taskset, HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production",
               "-w", "auto", "-t", threads.to_s, *options, folder]
    serve(folder, command: command)
  end

  def serve_in_container
    app = folder_with("config.ru" => APP)
    options = %w[-b 127.0.0.1 -p 0 -e production]
    command = [*ALONE, "sh", "-c", "#{LIMITS} \"$@\"", "sh", HighballServer::BINARY, "serve", *options, app]
    serve(app, command: command)
  end

  def sizing(server) = server.full_status["apps"].first["sizing"]

  # Runs the block while requests come at a steady rate. None of them may fail.
  def under_load(server, target, per_second:)
    done = false
    load = Thread.new do
      outcomes = []
      outcomes << SteadyLoad.run(server, target, per_second: per_second, seconds: 1) until done
      outcomes.flat_map(&:keys).uniq
    end
    begin
      yield
    ensure
      done = true
      load.join
    end
    assert_equal [200], load.value
  end
end
