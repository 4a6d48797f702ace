# frozen_string_literal: true

# marks: few (it measures how soon answers come while workers are busy)

require_relative "../../support/memory_report"

# `highball memory` of a running Highball, compared with the figures of the kernel and of Ruby.
class MemoryTest < MemoryReportTest
  COLUMNS = 100
  LIB = { "RUBYLIB" => File.join(HighballServer::ROOT, "lib") }.freeze

  # --- processes

  def test_figures_are_those_of_smaps_rollup
    server = serve("heaps", workers: 2)
    server.get("/fill")
    processes = memory(server).fetch("processes")
    ruby = of_app(server, processes)
    assert_equal %w[mold worker worker], roles(ruby)
    assert_equal [server.mold_pid, *server.worker_pids], pids(ruby)
    assert_equal(%w[booted serving serving], ruby.map { |process| process["state"] })
    own = processes - ruby
    assert_equal server.own_pids.sort, pids(own).sort
    assert_equal ["highball", server.pid, nil], own.first.values_at("role", "pid", "state")
    processes.each { |process| assert_agrees_with_rollup(process) }
    largest = processes.map { |process| process.dig("memory", "private_dirty_mib") }.max
    assert_operator largest, :>, 40, "the worker that was filled"
  end

  def test_totals_are_sums_and_rings_are_counted_once
    server = serve("heaps", workers: 2)
    50.times { server.get("/") }
    instance = memory(server)
    assert_total_is_sum(instance)
    assert_operator instance["total"]["ring_mib"], :>, 0
    skip "needs root, to see how large the files behind the rings are" unless Process.uid.zero?
    assert_in_delta ring_file_bytes(server) / MIB.to_f, instance["total"]["ring_mib"], 0.02
  end

  def test_what_the_application_has_started_is_counted
    server = serve("heaps")
    pid = JSON.parse(server.get("/child").body).fetch("child")
    wait_for("the child's own command") { ProcessFacts.alive?(pid) && File.read("/proc/#{pid}/comm") == "sleep\n" }
    processes = memory(server)["processes"]
    assert_equal %w[mold worker child], roles(of_app(server, processes))
    assert_equal [pid, "sleep 60"], processes.last.values_at("pid", "command")
    assert_agrees_with_rollup(processes.last)
  ensure
    HighballServer.kill(pid) if pid
  end

  def test_the_caller_is_the_mold_of_its_application
    script = <<~RUBY
      require "highball/handler"
      Highball::Handler.run(->(_env) { [200, {}, ["an object"]] }, Host: "127.0.0.1", Port: 0)
    RUBY
    server = serve(folder_with("serve.rb" => script), command: ["ruby", "serve.rb"], env: LIB)
    processes = memory(server).fetch("processes")
    assert_equal %w[highball mold worker], roles(processes).first(3)
    assert_equal server.pid, processes[1]["pid"]
    assert_nil processes[1]["heap_missing"]
  end

  # --- Ruby's heap

  def test_heaps_are_those_of_gc_stat
    server = serve("heaps")
    own = JSON.parse(server.get("/keep").body)
    stat = own["gc"]
    heap = worker(memory(server))["heap"]
    assert_close stat["heap_live_slots"], heap["live_slots"]
    assert_close stat["heap_free_slots"], heap["free_slots"]
    assert_close stat["heap_available_slots"], heap["page_slots"]
    assert_close stat["total_allocated_objects"], heap["total_allocated_objects"]
    assert_close stat["total_freed_objects"], heap["total_freed_objects"]
    assert_equal stat["heap_allocated_pages"], heap["pages"]
    assert_in_delta stat["heap_allocated_pages"] * own["page_bytes"] / MIB.to_f, heap["heap_mib"], 0.001
    assert_equal stat.values_at("count", "major_gc_count", "time"),
                 heap.values_at("gc_count", "major_gc_count", "gc_time_ms")
  end

  def test_after_a_collection_the_figures_are_of_live_objects
    server = serve("heaps")
    server.get("/keep")
    server.get("/shred")
    before = worker(memory(server))["heap"]
    after = worker(memory(server, "--gc"))["heap"]
    assert_equal before["major_gc_count"] + 1, after["major_gc_count"]
    assert_operator before["live_slots"] - after["live_slots"], :>, 200_000
    assert_in_delta 1 - (after["live_slots"] / after["page_slots"].to_f), after["fragmentation"], 0.0001
    assert_operator after["fragmentation"], :>, 0.5, "each page holds an object that is kept"
    assert_equal 200, server.get("/").status
  end

  def test_the_mold_reports_its_heap_and_stays_as_it_is
    server = serve("heaps")
    mold = ->(*options) { memory(server, *options)["processes"].find { |process| process["role"] == "mold" } }
    before = mold.call["heap"]
    after = mold.call("--gc")["heap"]
    assert_operator before["live_slots"], :>, 10_000
    assert_equal before["gc_count"], after["gc_count"]
    assert_equal 2, memory(server)["heap_total"]["heaps"]
  end

  # --- workers that do not answer

  def test_a_stopped_worker_is_named_and_holds_nothing_up
    server = serve("heaps", workers: 2)
    while_stopped(server) do |stopped|
      took, instance = timed { memory(server) }
      assert_operator took, :<, 4
      silent = instance["processes"].find { |process| process["pid"] == stopped }
      assert_nil silent["heap"]
      assert_match(/did not answer within 1 s/, silent["heap_missing"])
      assert_agrees_with_rollup(silent)
      assert_equal 2, instance["heap_total"]["heaps"], "the mold and the other worker"
    end
    assert_equal 3, memory(server)["heap_total"]["heaps"]
  end

  def test_other_requests_are_answered_while_a_collection_runs
    server = serve("heaps", workers: 2)
    collecting = while_stopped(server) do
      thread = Thread.new { memory(server, "--gc") }
      8.times do
        took, status = timed { server.status }
        assert_operator took, :<, 2
        assert_equal 2, status["workers"].length
        assert_predicate thread, :alive?
      end
      thread
    end
    assert_equal 3, collecting.value["heap_total"]["heaps"]
  end

  def test_one_that_is_asked_again_and_again_answers_later
    server = serve("heaps")
    stopped = while_stopped(server) do |pid|
      missing = Array.new(6) { worker(memory(server))["heap_missing"] }
      assert_match(/did not answer within/, missing.first)
      assert_match(/earlier questions/, missing.last)
      pid
    end
    wait_for("its answer") { worker(memory(server))["heap"] }
    assert_equal [stopped], server.worker_pids
  end

  def test_an_unexpected_answer_is_a_protocol_error
    server = serve("heaps")
    misbehaving = server.worker_pids.first
    begin
      server.request("POST", "/tell", {}, "")
    rescue EOFError, SystemCallError
      nil # it may be killed before it has answered
    end
    wait_for("another worker", within: 20) { (server.worker_pids - [misbehaving]).any? }
    assert_match(/answers a question that was not asked/, server.log)
    assert_equal 200, server.get("/", within: 20).status
  end

  # --- without an instance, and for people

  def test_without_an_instance_it_is_no_failure
    empty = folder_with
    output = highball("memory", "--json", env: { "XDG_RUNTIME_DIR" => empty })
    assert_kind_of Array, JSON.parse(output).fetch("others")
    output, ended = HighballServer.run("memory", "--port", "1")
    refute_predicate ended, :success?, "a certain one was asked for"
    assert_match(/on port 1/, output)
  end

  def test_the_tables
    server = serve("heaps", workers: 2)
    text = highball("memory", *server.which)
    text.each_line(chomp: true) { |line| assert_operator line.length, :<=, COLUMNS, line }
    assert_match(/private dirty +PSS +RSS +swap/, text)
    [server.pid, server.mold_pid, *server.worker_pids].each { |pid| assert_match(/^  \w.* #{pid}  +[\d.]+/, text) }
    assert_equal 2, text.scan(/^  worker \d .* ms$/).length
  end

  private

  # Yields the pid of a worker that is stopped meanwhile.
  def while_stopped(server)
    pid = server.worker_pids.first
    stop_processes([pid])
    yield pid
  ensure
    HighballServer.kill(pid, "CONT") if pid
  end

  # What the kernel has allocated for the rings, each file once.
  def ring_file_bytes(server)
    mapped = Dir["/proc/#{server.server_pid}/map_files/*"]
    files = mapped.select { |path| File.readlink(path).include?("highball-ring") }
    files.map { |path| File.stat(path) }.uniq(&:ino).sum { |file| file.blocks * 512 }
  end

  # The tolerance: objects that the two requests create and collect.
  def assert_close(expected, actual)
    assert_in_delta expected, actual, (expected * 0.01) + 1000
  end

  def timed
    began = Deadline.now
    result = yield
    [Deadline.now - began, result]
  end
end
