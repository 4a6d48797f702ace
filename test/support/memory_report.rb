# frozen_string_literal: true

require "json"
require_relative "e2e_test"

# A test of the output of `highball memory --json`.
class MemoryReportTest < E2ETest
  TOLERANCE = 0.25 # MiB, for what changes between two looks at a process
  PSS_TOLERANCE = 1.0 # MiB; other Rubies of this machine share its library, and come and go

  # The report on this server.
  def memory(server, *options)
    output = highball("memory", "--json", *options, *server.which)
    instances = report(output).fetch("highball")
    assert_equal [server.status["pid"]], pids(instances)
    instances.first
  end

  # The report on other servers.
  def others
    output = highball("memory", "--json")
    report(output).fetch("others")
  end

  # Servers that do not answer are named first, on standard error.
  def report(output) = JSON.parse(output.slice(/^\{.*/m))

  # The application's processes: all except Highball's own.
  def of_app(server, processes) = processes.reject { |process| server.own_pids.include?(process["pid"]) }

  def worker(instance) = instance["processes"].find { |process| process["worker"] }
  def roles(processes) = processes.map { |process| process["role"] }
  def pids(processes) = processes.map { |process| process["pid"] }

  def assert_agrees_with_rollup(process)
    memory = process.fetch("memory")
    assert_in_delta rollup_mib(process, "Rss"), memory["rss_mib"], TOLERANCE, process["command"]
    assert_in_delta rollup_mib(process, "Swap"), memory["swap_mib"], TOLERANCE, process["command"]
    assert_in_delta rollup_mib(process, "Pss"), memory["pss_mib"], PSS_TOLERANCE, process["command"]
    private_dirty = memory["private_dirty_mib"] + memory["ring_private_dirty_mib"]
    assert_in_delta rollup_mib(process, "Private_Dirty"), private_dirty, TOLERANCE, process["command"]
  end

  def assert_total_is_sum(group)
    %w[private_dirty_mib pss_mib rss_mib swap_mib].each do |name|
      sum = group["processes"].sum { |process| process["memory"][name] }
      assert_in_delta sum, group["total"][name], 0.001, name
    end
  end

  private

  def rollup_mib(process, name)
    ProcessFacts.rollup(process["pid"], name) / MIB.to_f
  end
end
