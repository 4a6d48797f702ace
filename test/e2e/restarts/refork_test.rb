# frozen_string_literal: true

# marks: long, root, debian13

require_relative "../../support/refork_test_case"

# A warm worker becomes the mold, and forks replacements for the others. Clients do not notice.
class ReforkTest < ReforkTestCase
  def test_three_reforks_under_load
    server = serve(version(1), workers: 2)
    load = KeepAliveLoad.during(server) do |clients|
      3.times do
        before = server.status
        promoted = refork(server)
        old = before["workers"].to_h { |worker| [worker["worker"], worker["pid"]] }
        assert_equal old.fetch(promoted), server.mold_pid
        assert_equal promoted, server.status.dig("mold", "promoted_from")
        assert_empty server.worker_pids & old.values
        wait_for("end of the old mold") { !ProcessFacts.alive?(before.dig("mold", "pid")) }
        clients.more(3)
      end
    end
    assert_empty load.failures
    assert_equal [[1]], load.versions_met.uniq
    assert_whole(server, 2)
  end

  def test_the_schedule
    server = serve(version(1), "--refork-after", "20,40", workers: 2)
    server.connect do |connection|
      [[1, "20 requests"], [2, "40 requests"], [3, "40 requests"]].each do |number, cause|
        wait_for("refork #{number}", within: 60) do
          assert_equal 200, connection.get("/").status
          refork = server.status["refork"]
          refork && refork["number"] == number && refork["state"] == "done" && assert_equal(cause, refork["asked_by"])
        end
      end
    end
    assert_whole(server, 2)
  end

  # Ruby keeps what is written to a file for a while. Each fork would write it as well.
  def test_what_a_file_has_not_written_yet_is_written_once
    app = version(1, folder_with, <<~RUBY)
      run lambda { |env|
        ($audit ||= File.open(File.join(__dir__, "audit.log"), "a")).puts(env["PATH_INFO"])
        [200, {}, ["1 "]]
      }
    RUBY
    server = serve(app)
    server.get("/before")
    refork(server)
    server.get("/after")
    server.stop
    assert_equal ["/after", "/before"], File.readlines(File.join(app, "audit.log"), chomp: true).grep_v("/").sort
  end

  def test_by_signal
    server = serve(version(1))
    server.signal("URG")
    assert_equal "URG", wait_for_refork(server, "done")["asked_by"]
  end

  # With a single worker, too, another serves before it ends.
  def test_never_fewer_workers_than_wanted_and_one_more_process_at_most
    [1, 2].each do |wanted|
      server = serve(version(1), workers: wanted)
      reforking = Thread.new { refork(server) }
      until reforking.join(0.001)
        states = workers(server)
        assert_operator states.count("serving"), :>=, wanted, states
        assert_operator states.length, :<=, wanted + 1, states
      end
      assert_operator reforking.value, :>, 0
    end
  end

  def test_a_request_that_takes_long_is_finished_by_the_worker_that_is_promoted
    app = version(1, folder_with, <<~RUBY)
      run lambda { |env|
        if env["PATH_INFO"] == "/long"
          warn "started"
          sleep 0.01 until File.exist?(File.join(__dir__, "go"))
        end
        [200, {}, ["1 \#{Process.pid}"]]
      }
    RUBY
    server = serve(app)
    server.connect do |connection|
      connection.send_request("POST", "/long", {}, "x")
      wait_for("begin of the request") { server.log.include?("started") }
      pid = server.worker_pids.first
      reforking = Thread.new { refork(server) }
      wait_for_refork(server, "retiring")
      assert_equal "1", answer(server)
      let_go(app)
      assert_equal "1 #{pid}", connection.read_response.body
      reforking.join
      assert_equal pid, server.mold_pid
      assert_equal 200, connection.get("/").status
    end
  end

  def test_hooks
    app = version(1, folder_with, <<~RUBY)
      note = ->(words) { File.write(File.join(__dir__, "hooks"), "\#{words}\\n", mode: "a") }
      Highball.before_refork { |number| note["before_refork \#{number}"] }
      Highball.before_fork { note["before_fork"] }
      Highball.after_fork { |number| note["after_fork \#{number}"] }
      Highball.before_worker_shutdown { |number| note["before_worker_shutdown \#{number}"] }
      #{CONFIG}
    RUBY
    server = serve(app)
    refork(server)
    expected = ["before_fork", "after_fork 1", "after_fork 2", "before_refork 1", "before_fork", "after_fork 3",
                "before_worker_shutdown 2"]
    wait_for("the last hook") { File.readlines(File.join(app, "hooks"), chomp: true) == expected }
  end

  def test_nothing_is_handed_down_from_worker_to_worker
    server = serve(version(1))
    files = lambda do
      links = Dir.glob("/proc/#{server.worker_pids.first}/fd/*").map { |fd| File.readlink(fd).sub(/\d+/, "N") }
      links.sort
    end
    before = files.call
    5.times do
      answer(server)
      refork(server)
    end
    assert_equal before, files.call
    refute_match(/memfd:/, File.read("/proc/#{server.mold_pid}/maps"))
  end

  def test_a_hijacked_connection_ends_with_its_worker
    app = version(1, folder_with, <<~RUBY)
      run lambda { |env|
        next [200, {}, ["1"]] unless env["PATH_INFO"] == "/socket"
        socket = env["rack.hijack"].call
        socket.write("HTTP/1.1 101 Switching Protocols\\r\\nConnection: upgrade\\r\\nUpgrade: x\\r\\n\\r\\nhello")
        socket.flush
        KEPT << socket
        [-1, {}, []]
      }
      KEPT = []
    RUBY
    server = serve(app)
    server.connect do |connection|
      connection.write("GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").read_response
      assert_equal "hello", connection.read_bytes(5)
      refork(server)
      assert_predicate connection, :ended?
    end
  end

  # After a refork, workers share memory that each of them had separately.
  def test_memory_that_was_filled_by_requests_is_shared
    app = version(1, folder_with, <<~RUBY)
      CACHE = []
      run lambda { |_env|
        CACHE.concat(Array.new(100_000) { |number| "a string that is too long to be embedded: \#{number}" }) if CACHE.empty?
        [200, {}, ["1"]]
      }
    RUBY
    server = serve(app, workers: 1)
    before = ProcessFacts.private_dirty_bytes(server.worker_pids)
    assert_operator before, :>, 10 << 20
    refork(server)
    answer(server)
    assert_operator ProcessFacts.private_dirty_bytes(server.worker_pids), :<, before / 2
  end

  # --- not for every application

  def test_an_application_that_calls_fork_unsafe
    refused("Highball.fork_unsafe!('it holds a lock')\n#{CONFIG}", /it holds a lock/)
  end

  def test_native_threads_that_are_not_rubys
    refused(<<~RUBY, /native threads that are not Ruby's \(\S+/)
      require "fiddle"
      Highball.after_fork do
        libc = Fiddle.dlopen(nil)
        create = Fiddle::Function.new(libc["pthread_create"], [Fiddle::TYPE_VOIDP] * 4, Fiddle::TYPE_INT)
        create.call(Fiddle::Pointer.malloc(8), nil, libc["pause"], nil)
      end
      #{CONFIG}
    RUBY
  end

  # Ruby keeps the native threads of ended threads for a while.
  def test_threads_that_came_and_went_are_no_obstacle
    refork(serve(version(1, folder_with, <<~RUBY)))
      Highball.after_fork { Thread.new { loop { Thread.new { sleep 0.01 }.join } } }
      Highball.before_refork { Thread.list.each { |thread| thread.kill unless thread == Thread.main } }
      #{CONFIG}
    RUBY
  end

  private

  # Nothing happens, and the log shows why, once.
  def refused(config, why)
    server = serve(version(1, folder_with, config), "--refork-after", "3", workers: 2)
    before = [server.mold_pid, *server.worker_pids]
    20.times { assert_equal "1", answer(server) }
    wait_for("the refusal", within: 20) { server.status["no_refork"] }
    20.times { assert_equal "1", answer(server) }
    assert_match why, server.status["no_refork"]
    assert_equal before, [server.mold_pid, *server.worker_pids]
    assert_equal 1, server.log.scan(/no refork/).length
    assert_match why, refork_fails(server)
  end
end
