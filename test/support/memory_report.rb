# frozen_string_literal: true

require "json"
require_relative "e2e_test"

# A test of what `highball memory --json` says.
class MemoryReportTest < E2ETest
  TOLERANCE = 0.25 # MiB, for what changes between two looks at a process
  PSS_TOLERANCE = 1.0 # MiB; other Rubies of this machine share its library, and come and go

  # What is said of this server.
  def memory(server, *options)
    output, ended = HighballServer.run("memory", "--json", *options, *server.which)
    assert_predicate ended, :success?, output
    instances = report(output).fetch("highball")
    assert_equal [server.status["pid"]], pids(instances)
    instances.first
  end

  # What is said of other servers.
  def others
    output, ended = HighballServer.run("memory", "--json")
    assert_predicate ended, :success?, output
    report(output).fetch("others")
  end

  # Servers that do not answer are named first, on standard error.
  def report(output) = JSON.parse(output.slice(/^\{.*/m))

  # Those that the application is: all but Highball's own, of which there may be several.
  def of_app(server, processes) = processes.reject { |process| server.own_pids.include?(process["pid"]) }

  def worker(instance) = instance["processes"].find { |process| process["worker"] }
  def roles(processes) = processes.map { |process| process["role"] }
  def pids(processes) = processes.map { |process| process["pid"] }

  def assert_agrees_with_rollup(process)
    told = process.fetch("memory")
    assert_in_delta rollup_mib(process, "Rss"), told["rss_mib"], TOLERANCE, process["command"]
    assert_in_delta rollup_mib(process, "Swap"), told["swap_mib"], TOLERANCE, process["command"]
    assert_in_delta rollup_mib(process, "Pss"), told["pss_mib"], PSS_TOLERANCE, process["command"]
    private_dirty = told["private_dirty_mib"] + told["ring_private_dirty_mib"]
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
