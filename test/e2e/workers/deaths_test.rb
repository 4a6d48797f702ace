# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/load"

# kill -9 of every process there is, under load.
class DeathsTest < E2ETest
  BOOT_AND_A_SECOND = 2 # seconds; the probe is there in well under one

  def test_a_killed_worker_loses_only_the_requests_that_it_had_started
    server = serve("probe", workers: 2, threads: 2)
    victim = server.worker_pids.first
    outcomes = Load.during(server, clients: 8, method: "POST", target: "/sleep?ms=5") do |load|
      HighballServer.kill(victim)
      replaced_within(server, victim)
      more(load, 200)
    end
    failed = outcomes.reject { |outcome| outcome.result == 200 }
    # It has two threads, so it had started two requests at most.
    assert_operator failed.length, :<=, 2
    assert_empty failed.map(&:result) - [502]
    assert_operator outcomes.map(&:seconds).max, :<, 5
  end

  def test_what_may_be_repeated_is_repeated
    server = serve("probe", workers: 2, threads: 2)
    victim = server.worker_pids.first
    outcomes = Load.during(server, clients: 8, method: "GET", target: "/sleep?ms=5") do |load|
      HighballServer.kill(victim)
      replaced_within(server, victim)
      more(load, 200)
    end
    assert_equal [200], outcomes.map(&:result).uniq
  end

  def test_a_request_that_kills_its_workers_is_repeated_once_only
    server = serve("probe", workers: 2, threads: 1)
    assert_equal 502, server.get("/die", within: 30).status
    assert_equal 502, server.request("POST", "/die", {}, "x", within: 30).status
    wait_for("both workers", within: BOOT_AND_A_SECOND * 2) { server.worker_pids.length == 2 }
    assert_equal 200, server.get("/").status
  end

  def test_a_worker_that_dies_while_it_answers
    server = serve("probe", workers: 1)
    server.connect do |connection|
      connection.send_request("GET", "/download?bytes=100000000")
      connection.read_bytes(1)
      HighballServer.kill(server.worker_pids.first)
      assert_raises(EOFError, Errno::ECONNRESET) { connection.read_bytes(200_000_000) }
    end
    assert_equal 200, server.get("/", within: 30).status
  end

  def test_requests_wait_for_the_next_worker_when_the_only_one_has_died
    server = serve("probe", workers: 1)
    HighballServer.kill(server.worker_pids.first)
    began = Deadline.now
    answers = concurrently(10) { server.get("/", within: 30).status }
    assert_equal [200], answers.uniq
    assert_operator Deadline.now - began, :<, BOOT_AND_A_SECOND
  end

  def test_a_killed_mold_boots_again_while_serving_goes_on
    server = serve("probe", workers: 2)
    mold = server.mold_pid
    outcomes = Load.during(server) do |load|
      HighballServer.kill(mold)
      wait_for("a new mold") do
        ![nil, mold].include?(server.mold_pid) && server.status.dig("mold", "state") == "booted"
      end
      more(load, 200)
    end
    assert_equal [200], outcomes.map(&:result).uniq
    # And it can fork.
    victim = server.worker_pids.first
    HighballServer.kill(victim)
    replaced_within(server, victim)
  end

  def test_mold_and_workers_killed_at_once
    server = serve("probe", workers: 2)
    [server.mold_pid, *server.worker_pids].each { |pid| HighballServer.kill(pid) }
    assert_equal 200, server.get("/", within: 30).status
  end

  def test_a_stopped_worker_does_not_hold_up_other_requests
    server = serve("probe", workers: 2, threads: 1)
    stopped = server.worker_pids.first
    stop_processes([stopped]) # a request that it has begun cannot be taken back
    answers = concurrently(4) { Array.new(20) { server.connect { |c| c.get("/", within: 3).status } } }
    # Requests placed with the stopped worker are taken back and given to the other.
    assert_equal [200], answers.flatten.uniq
  ensure
    Process.kill("CONT", stopped) if stopped
  end

  def test_a_killed_highball_leaves_nothing_behind_and_the_next_start_needs_no_cleaning_up
    folder = folder_with
    socket = File.join(folder, "app.sock")
    pidfile = File.join(folder, "app.pid")
    first = serve("probe", "--pidfile", pidfile, bind: socket, workers: 2)
    Load.during(first, clients: 4) do
      HighballServer.kill(first.pid)
      first.wait
    end
    assert_empty first.orphans
    second = serve("probe", "--pidfile", pidfile, bind: socket, workers: 2)
    assert_equal 200, second.get("/").status
    assert_equal second.pid, File.read(pidfile).to_i
  end

  # A worker whose thread holds the GVL must end with its server, too.
  def test_a_killed_highball_leaves_no_cpu_bound_worker
    server = serve("probe")
    server.connect do |connection|
      connection.send_request("GET", "/cpu?ms=600000")
      wait_for("begin of the request") { server.log.include?("probe begins /cpu") }
      HighballServer.kill(server.pid)
      server.wait
      assert_empty server.orphans
    end
  end

  def test_an_app_whose_workers_always_die_ends_with_a_clear_message
    app = folder_with("config.ru" => <<~RUBY)
      # Every child of the mold ends itself as soon as it is forked.
      Process.singleton_class.prepend(Module.new do
        def _fork
          pid = super
          Process.kill(:KILL, Process.pid) if pid.zero?
          pid
        end
      end)
      run ->(_env) { [200, {}, []] }
    RUBY
    options = %w[-e production -b 127.0.0.1 -p 0 --max-boot-failures 3]
    output = highball_fails("serve", *options, app)
    assert_match(/worker/, output)
  end

  private

  def replaced_within(server, victim)
    wait_for("the next worker", within: BOOT_AND_A_SECOND) do
      workers = server.status.fetch("workers").select { |worker| worker["state"] == "serving" }
      workers.length == 2 && workers.none? { |worker| worker["pid"] == victim }
    end
  end

  def more(load, count)
    so_far = load.count
    wait_for("#{count} further answers", within: 30) { load.count >= so_far + count }
  end
end
