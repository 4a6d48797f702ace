# frozen_string_literal: true

require "minitest/autorun"
require_relative "../../bench/hello"

class BenchReportTest < Minitest::Test
  def test_medians_and_ranges
    report = Bench::Report.new([10.0, 30.0, 20.0].map { |cpu| measurement("floor", cpu) }, [])

    assert_match(/\| 25 +\| floor +\| 20\.0 \(10\.0–30\.0\) +\|/, report.tables(range: true)["Per request"])
  end

  def test_ratios_are_taken_within_a_round
    highball = [10.0, 30.0].map { |cpu| measurement("highball", cpu) }
    puma = [100.0, 100.0].map { |cpu| measurement("puma", cpu) }
    report = Bench::Report.new(highball + puma, [])

    table = report.tables(range: true)["Highball against the others"]

    assert_match(%r{\| 25 +\| Highball / Puma \| 0\.200 \(0\.100–0\.300\) +\|}, table)
    assert_equal 3, table.lines.size
  end

  def test_a_run_with_errors_is_marked_and_its_errors_summed
    errors = [{ "read" => 2 }, {}, { "read" => 1, "status" => 4 }]
    runs = errors.map { |of_run| measurement("puma", 1.0, of_run) }
    report = Bench::Report.new(runs, [])

    assert_match(/\| Puma ! .*\| read 3, status 4 \|$/, report.tables(range: false)["Per request"])
    marked = report.measurements.lines.drop(2).map { |line| line.include?("Puma !") }
    assert_equal [true, false, true], marked
  end

  private

  def measurement(scheme, cpu_us, errors = {})
    load = Bench::Wrk::Load.new(requests: 1000, rate: 500.0, p50_ms: 1.0, p99_ms: 2.0, errors:)
    memory = Bench::ProcessTree::Memory.new(1.0, 2.0, 0.0)
    Bench::Measurement.new(scheme: Bench::SCHEMES[scheme], connections: 25, round: 1, load:, memory:,
                           user_us: 0.0, system_us: cpu_us, context_switches: 0.0, others_percent: 0.0,
                           steal_percent: 0.0)
  end
end
