# frozen_string_literal: true

require_relative "../support/server_test_case"
require "highball/busy_threads"

# What a worker says of the threads that are at a request.
class BusyThreadsTest < ServerTestCase
  def test_a_thread_that_computes_is_never_said_to_sleep
    computing = true
    serve_paths({ "/compute" => ->(_env) { computing ? redo : OK } }, threads: 3)
    computes = place({ "PATH_INFO" => "/compute" })
    # Other requests wait for their turn, so the thread that computes steps aside.
    seen = Array.new(8) do
      assert_serves
      states
    end
    computing = false
    assert_equal "ok", answer_to(computes).body
    assert_equal ["run"], seen.flatten.uniq
  end

  def test_a_thread_that_sleeps_is_said_to
    serve_paths({ "/sleep" => ->(_env) { sleep and OK } }, threads: 2)
    place({ "PATH_INFO" => "/sleep" })
    wait_for("the thread to sleep") { states == ["sleep"] }
    threads.each(&:wakeup)
  end

  def test_of_many_requests_those_that_are_asked_for_come_first
    many = Highball::BusyThreads::MOST + 2
    serve_paths({ "/sleep" => ->(_env) { sleep and OK } }, threads: many)
    many.times { place({ "PATH_INFO" => "/sleep" }) }
    wait_for("all threads to sleep") { states.size == Highball::BusyThreads::MOST && threads.all?(&:stop?) }
    tickets = Array.new(many) { |number| @server.ticket(number) }
    tickets.each do |ticket|
      seen = Highball::BusyThreads.of(@server, first: [ticket, 0]).map { |place| place[:ticket] }
      assert_equal [ticket, Highball::BusyThreads::MOST], [seen.first, seen.uniq.size]
    end
    threads.each(&:wakeup)
  end

  private

  # Of the threads that run code of this file.
  def states
    busy = Highball::BusyThreads.of(@server)
    busy.filter_map { |place| place[:state] if place[:backtrace].grep(/busy_threads_test/).any? }
  end
end
