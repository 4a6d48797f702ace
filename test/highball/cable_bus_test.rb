# frozen_string_literal: true

require "minitest/autorun"
require "minitest/mock"
require "highball/hub_connection"
require "highball/cable/bus"
require_relative "../support/deadline"

# When a worker that waits for its turn at the bus between machines has started. Redis and the hub are doubles.
class CableBusTest < Minitest::Test
  Bus = Highball::Cable::Bus
  WITHIN = 10 # seconds
  # However long this machine takes.
  Bus.send(:remove_const, :READY)
  Bus::READY = 60

  # What listens to Redis.
  class Listener
    attr_reader :subscribed, :received

    def psubscribe(&block) = @subscribed = block
    def pmessage(&block) = @received = block
  end

  # Its only client hears what it publishes.
  class Redis
    attr_reader :published

    def initialize
      @published = []
      @queue = Queue.new
    end

    def publish(channel, text)
      @published << text
      @queue << [channel, text]
    end

    def psubscribe(_pattern)
      listener = Listener.new
      yield listener
      listener.subscribed.call
      while (message = @queue.pop)
        listener.received.call(nil, *message)
      end
    end

    def close = @queue.close
  end

  # Replies what was pushed.
  class Hub < Queue
    # The kinds of orders that another server may take.
    attr_reader :following

    def order(kind, *, follows: true)
      (@following ||= []) << kind if follows
      pop
    end

    def reply(_ends_at) = pop
    def shutdown = close
  end

  class TestedBus < Bus
    def initialize(redis) # rubocop:disable Lint/MissingSuper -- it loads Action Cable, and a gem
      @redis = redis
      @settings = {}
      @mutex = Mutex.new
      @listens = ConditionVariable.new
    end

    private

    def connect(**) = @redis
    def publisher = @redis
  end

  def setup
    @hub = Hub.new
    @redis = Redis.new
    @bus = TestedBus.new(@redis)
  end

  def teardown = @bus.stop

  def test_a_worker_has_started_when_the_hub_has_a_mark_that_it_knows
    @hub << [Bus::STAND_BY, "earlier:0"]
    starting = start
    Deadline.wait("its mark") { @redis.published.any? }
    refute starting.join(0.2), "the hub may be at a place that this worker does not know"
    @hub << [Bus::STAND_BY, "#{@redis.published.first}:0"]
    assert starting.join(WITHIN)
  end

  def test_where_the_hub_has_no_mark_yet_a_worker_has_started_when_it_listens
    @hub << [Bus::STAND_BY, ""]
    assert start.join(WITHIN)
  end

  # The other server has a process that brings it this message.
  def test_what_it_brings_is_for_this_server_alone
    2.times { @hub << [0, ""] }
    assert start.join(WITHIN)
    Deadline.wait("both orders") { @hub.empty? }
    assert_equal [Bus::BRING], @hub.following
  end

  private

  def start
    opened = Thread.new { Highball::HubConnection.stub(:open, @hub) { @bus.start(nil) } }
    opened.report_on_exception = true
    opened
  end
end
