# frozen_string_literal: true

require "minitest/autorun"
require "highball/idle_memory"
require "highball/own_memory"

# When a worker without requests gives memory back.
class IdleMemoryTest < Minitest::Test
  # In place of a Highball::Server.
  Serving = Struct.new(:tickets, :busy) do
    def busy? = busy
  end
  KIB = 1024

  def setup
    Highball::Extension.load
    @server = Serving.new([0, 0], false)
    @idle = Highball::IdleMemory.new(@server)
  end

  def test_it_waits_until_the_worker_is_idle_and_does_it_once
    refute @idle.look, "nothing was served"
    @server.tickets = [5, 0]
    refute @idle.look, "it has just served"
    assert @idle.look
    refute @idle.look, "nothing was served since"
    @server.tickets = [5, 7]
    refute @idle.look
    assert @idle.look
  end

  def test_a_request_that_takes_long_is_no_pause
    @server.tickets = [5, 0]
    @server.busy = true
    3.times { refute @idle.look }
    @server.busy = false
    assert @idle.look
  end

  def test_an_application_that_has_disabled_the_collector_is_left_alone
    GC.disable
    @server.tickets = [5, 0]
    3.times { refute @idle.look }
    assert GC.enable, "it is still disabled"
  ensure
    GC.enable
  end

  def test_what_requests_have_dropped_is_given_back
    skip "another malloc gives back by itself" if ENV["LD_PRELOAD"]
    @server.tickets = [5, 0]
    GC.disable
    # (Ruby 3.3 keeps up to 640 bytes in the slots of the heap.)
    20_000.times { |number| "#{number} " * 200 }
    GC.enable
    @idle.look
    before = own_kib
    assert @idle.look
    assert_operator own_kib, :<, before - (10 * KIB), "KiB"
  end

  private

  def own_kib
    figures = Highball::OwnMemory.figures or skip "the kernel does not report it"
    figures.fetch(:private_dirty_kib)
  end
end
