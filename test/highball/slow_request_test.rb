# frozen_string_literal: true

require "minitest/autorun"
require "highball/slow_request"

# Where the time of a slow request goes, from samples of its thread.
class SlowRequestTest < Minitest::Test
  Location = Struct.new(:path, :lineno, :label) do
    def absolute_path = path
  end
  Clocks = Highball::SlowRequest::Clocks
  OWN = "#{Highball::App::FOLDER}/app/report.rb".freeze
  GEM = "/var/lib/gems/3.3.0/gems/pg-1.5/lib/pg/connection.rb"

  def setup
    @request = Highball::SlowRequest.new(7, "GET /reports", 10.0, Clocks.new(10.2, 1.0, 5.0, 0.5, 0.0))
  end

  def test_time_is_divided_by_what_the_thread_did
    sample([OWN, 48, "block in totals"], at: 10.3, runs: true, cpu: 0.1, process: 0.1)
    sample([OWN, 49, "totals"], at: 11.3, runs: true, cpu: 0.25, process: 1.0, collector: 0.1)
    sample([OWN, 51, "exec"], [OWN, 51, "totals"], at: 12.3, cpu: 0.1, process: 0.9)
    @request.end_at(12.4)
    report = @request.report(13.0)
    assert_equal [7, "GET /reports", 2400, true, 3], report.values_at(:ticket, :request, :ms, :ended, :samples)
    parts = report[:parts].to_h { |part| [part[:what], part[:ms]] }
    # 0.2 s before it was watched, 0.1, 0.25 without a part of the collection, and 0.1; and 0.1 after the last sample
    assert_equal({ "waiting" => 1000, "gvl" => 750, "computing" => 625, "gc" => 25 }, parts)
    assert_equal ["app/report.rb", 51, "totals", "exec"],
                 report[:parts].find { |part| part[:what] == "waiting" }.values_at(:file, :line, :label, :below)
    assert_equal [48, nil], report[:parts].find { |part| part[:what] == "computing" }.values_at(:line, :below)
  end

  # Where threads get half of the CPU time that they need, what they do takes twice the time.
  def test_on_a_busy_machine_waiting_for_a_cpu_is_part_of_what_the_thread_did
    sample([OWN, 49, "totals"], at: 11.2, runs: true, cpu: 0.25, process: 0.4, collector: 0.08, delayed: 0.25)
    parts = @request.report(11.2)[:parts].to_h { |part| [part[:what], part[:ms]] }
    # 0.2 s before it was watched; of 0.4 s, 0.25 were this thread's, with as much of the collection
    assert_equal({ "computing" => 600, "gvl" => 300, "gc" => 100, "waiting" => 200 }, parts)
  end

  def test_the_innermost_call_of_the_application_is_named_however_deep
    below = Array.new(200) { |number| [GEM, number, "method_#{number}"] }
    sample(*below, [OWN, 5, "Report#index"], [OWN, 9, "call"], at: 11.0)
    part = @request.report(11.0)[:parts].first
    assert_equal ["app/report.rb", 5, "Report#index", "method_0"], part.values_at(:file, :line, :label, :below)
  end

  def test_without_the_application_the_innermost_call_is_named
    vendored = "#{Highball::App::FOLDER}/vendor/bundle/ruby/3.3.0/gems/rack-3.0/lib/rack.rb"
    [[GEM, "pg-1.5/lib/pg/connection.rb"], [vendored, "rack-3.0/lib/rack.rb"]].each do |path, shown|
      setup
      sample([path, 3, "wait"], ["#{File.expand_path('../../lib/highball', __dir__)}/server.rb", 1, "serve"], at: 11.0)
      assert_equal [shown, "wait"], @request.report(11.0)[:parts].first.values_at(:file, :label)
    end
    setup
    sample(at: 11.0)
    assert_equal "(nothing of Ruby)", @request.report(11.0)[:parts].first[:label]
  end

  def test_what_is_kept_has_limits
    1000.times { |number| sample([OWN, number, "made_#{number}"], at: 10.2 + ((number + 1) * 0.01)) }
    report = @request.report(20.2)
    assert_equal 5, report[:parts].length
    assert_in_delta 10_200, report[:parts].sum { |part| part[:ms] } + report[:other_ms], 5
    long = Array.new(2) { [OWN + ("x" * 5000), 1, "y\xFF" * 5000] }
    setup
    sample(*long, at: 11.0)
    assert_operator Marshal.dump(@request.report(11.0)).bytesize, :<, 2000
  end

  private

  # Clocks: how much more than at the last sample.
  def sample(*places, at:, runs: false, cpu: 0, process: 0, collector: 0, delayed: 0)
    last = @clocks || Clocks.new(10.2, 1.0, 5.0, 0.5, 0.0)
    @clocks = Clocks.new(at, last.thread + cpu, last.process + process, last.gc + collector, last.delayed + delayed)
    locations = places.map { |place| Location.new(*place) }
    @request.sample(->(first, count) { locations[first, count] }, @clocks, runs: runs)
  end
end
