# frozen_string_literal: true

require "minitest/autorun"
require_relative "../../bench/hello"

class BenchWrkTest < Minitest::Test
  OUTPUT = <<~TEXT
    Running 2s test @ http://127.0.0.1:18990/
      1 threads and 25 connections
      Thread Stats   Avg      Stdev     Max   +/- Stdev
        Latency     7.97ms    9.58ms  49.17ms   78.77%
        Req/Sec     8.98k   809.04    10.13k    66.67%
      Latency Distribution
         50%  903.00us
         75%   15.67ms
         90%   23.26ms
         99%    1.06s
      26779 requests in 2.00s, 1.99MB read
    ERRORS
    Requests/sec:  13389.50
    Transfer/sec:    678.99KB
  TEXT

  def test_figures_are_read_and_units_converted
    load = Bench::Wrk.parse(OUTPUT.sub("ERRORS\n", ""))

    assert_equal [26_779, 13_389.5, {}], [load.requests, load.rate, load.errors]
    assert_in_delta 0.903, load.p50_ms
    assert_in_delta 1060, load.p99_ms
  end

  def test_errors_are_told_apart
    lines = "  Socket errors: connect 0, read 3, write 0, timeout 25\n  Non-2xx or 3xx responses: 7\n"

    load = Bench::Wrk.parse(OUTPUT.sub("ERRORS\n", lines))

    assert_equal({ "read" => 3, "timeout" => 25, "status" => 7 }, load.errors)
  end

  def test_a_run_without_requests_is_no_measurement
    error = assert_raises(Bench::Failure) { Bench::Wrk.parse(OUTPUT.sub("26779", "0")) }

    assert_match(/counted no requests/, error.message)
  end
end
