# frozen_string_literal: true

require "minitest/autorun"
require "tmpdir"
require "highball/forking_thread"
require_relative "../support/forked"

# When a boot that other workers are served beside gets an even lower priority.
class ForkingThreadTest < Minitest::Test
  def test_a_boot_that_hardly_waits_for_a_cpu
    assert_equal 10, nice_after("200000000 100000000 30\n")
  end

  def test_a_boot_that_waits_for_longer_than_it_runs
    assert_equal 5, nice_after("200000000 300000000 30\n")
  end

  def test_a_kernel_that_does_not_count
    assert_equal 5, nice_after(nil)
  end

  def test_what_this_kernel_counts
    read, write = IO.pipe
    Process.wait(fork do
      Highball::ForkingThread.lower_priority_again
      write.print("done")
      exit!
    end)
    write.close
    assert_equal "done", read.read
  end

  private

  # How many nice values a boot goes down which has run and waited for a CPU for these times.
  def nice_after(run_and_waited)
    counts = File.join(Dir.mktmpdir, "schedstat")
    File.write(counts, run_and_waited) if run_and_waited
    Forked.number do
      usual = Process.getpriority(Process::PRIO_PROCESS, 0)
      Highball::ForkingThread.lower_priority
      Highball::ForkingThread.lower_priority_again(counts)
      Process.getpriority(Process::PRIO_PROCESS, 0) - usual
    end
  ensure
    FileUtils.rm_rf(File.dirname(counts))
  end
end
