# frozen_string_literal: true

require "minitest/autorun"
require "highball/holdings"
require "highball/lasting_state"
require "socket"
require "tempfile"

# What a worker holds that its forks would share, lose, or repeat.
class HoldingsTest < Minitest::Test
  def setup
    Thread.list.each { |thread| thread.thread_variable_set(:fork_safe, true) } # Minitest's
    @holdings = Highball::Holdings.new(Highball::LastingState.new(__dir__))
  end

  def test_nothing_is_found_where_there_is_nothing
    assert_nil problem
    assert_nil @holdings.problem(serving: true)
  end

  def test_a_connection
    one, other = UNIXSocket.pair
    assert_match(/keeps a connection open \(descriptor \d+, socket:/, problem)
    assert_nil @holdings.problem(serving: true), "a request may close it"
    [one, other].each(&:close)
    assert_nil problem
  end

  def test_a_pipe
    ends = IO.pipe
    assert_match(/keeps a connection open \(descriptor \d+, pipe:/, problem)
    ends.each(&:close)
    assert_nil problem
  end

  def test_a_file_that_is_read_and_written
    File.open(File.join(Dir.tmpdir, "highball-holdings-#{Process.pid}"), "w+") do |file|
      File.unlink(file.path)
      assert_match(/keeps a file open for writing/, problem)
    end
    assert_nil problem
  end

  def test_a_file_that_is_only_written
    Tempfile.create("export") do |file|
      file.close
      export = File.open(file.path, "w")
      assert_match(/keeps a file open for writing/, problem)
      export.close
    end
  end

  def test_a_lock
    Tempfile.create("lock") do |file|
      file.close
      lock = File.open(file.path)
      assert_nil problem
      lock.flock(File::LOCK_EX)
      assert_match(/holds a lock on a file/, problem)
      lock.close
    end
  end

  def test_logs_devices_and_files_that_are_only_read_do_not_matter
    Tempfile.create("log") do |log|
      log.close
      files = [File.open(log.path, "a+"), File.open(log.path), File.open(File::NULL, "r+")]
      assert_nil problem
      files.each(&:close)
    end
  end

  def test_files_that_are_not_in_use_any_more_are_closed_first
    100.times { leave_a_file_open }
    refute_match(/, it keeps/, problem.to_s, "all but one, which may still be on the stack")
  end

  def test_what_was_there_before_and_what_is_highballs
    mine = @holdings.own { UNIXSocket.pair }
    assert_nil problem
    mine.each(&:close)
  end

  # The number of a descriptor may be given to another one.
  def test_the_same_number_is_not_the_same_descriptor
    mine = @holdings.own { UNIXSocket.pair }
    mine.each(&:close)
    others = UNIXSocket.pair
    assert_match(/keeps a connection open/, problem)
    others.each(&:close)
  end

  def test_a_thread
    thread = Thread.new { sleep }
    assert_match(/a thread of the application runs \(.*holdings_test\.rb:\d+/, @holdings.problem(serving: true))
    thread.thread_variable_set(:fork_safe, true)
    assert_nil problem
  ensure
    thread.kill.join
  end

  def test_the_thread_of_the_gem_timeout_does_not_matter
    thread = Thread.new { sleep }
    thread.name = "Timeout stdlib thread"
    assert_nil problem
  ensure
    thread.kill.join
  end

  def test_a_thread_that_ends_by_itself_does_not_matter
    thread = Thread.new { sleep 0.2 }
    assert_nil @holdings.problem(serving: true)
    thread.join
  end

  def test_a_child_process
    child = spawn("sleep", "60")
    skip "this kernel does not list children" unless File.exist?("/proc/self/task/#{Process.pid}/children")

    assert_match(/has a child process \(\S+, pid #{child}\)/, @holdings.problem(serving: true))
  ensure
    Process.kill(:KILL, child)
    Process.wait(child)
    assert_nil problem
  end

  def test_a_generator_of_random_numbers
    random = Random.new
    assert_match(/keeps a random number generator/, problem)
    assert random
  end

  def test_a_generator_takes_the_place_of_another
    first = Random.new(1)
    holdings = Highball::Holdings.new(Highball::LastingState.new(__dir__))
    assert_nil holdings.problem(serving: false)
    second = Random.new(1)
    assert_equal first, second
    assert_match(/keeps a random number generator/, holdings.problem(serving: false))
  end

  class Ids
    class << self
      attr_accessor :next
    end
  end

  def test_state_that_requests_have_left
    Ids.next = 17
    assert_match(/its requests have stored something in HoldingsTest::Ids\.@next that may belong to one/, problem)
  ensure
    Ids.next = nil
  end

  def test_a_worker_that_does_not_know_what_it_began_with
    assert_match(/was forked before refork_after was auto/, Highball::Holdings.new(nil).problem(serving: true))
  end

  private

  def leave_a_file_open
    path = File.join(Dir.tmpdir, "highball-holdings-#{Process.pid}")
    File.open(path, "w+")
    File.unlink(path)
  end

  def problem = @holdings.problem(serving: false)
end
