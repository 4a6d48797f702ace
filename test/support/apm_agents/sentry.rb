# frozen_string_literal: true

require "concurrent/executor/thread_pool_executor"
require_relative "agent_double"

# As sentry-ruby and sentry-rails 6.6: a pool of threads sends events, and starts again in a forked process. A thread
# that counts sessions starts with the first request. Both are flushed at the end. What belongs to a request hangs on
# its thread, not on its fiber.
module Sentry
  HUB = :sentry_hub

  # Counts requests, and reports the numbers every minute.
  class SessionFlusher
    def initialize
      @pending = 0
      @lock = Mutex.new
    end

    def add
      @thread = Thread.new { run } unless @thread&.alive?
      @lock.synchronize { @pending += 1 }
    end

    def flush
      count = @lock.synchronize { @pending.tap { @pending = 0 } }
      AgentDouble.report("sentry", [{ what: "sessions", count: count }]) if count.positive?
    end

    def kill = @thread&.kill

    private

    # The real minute: in this test, only the end flushes.
    def run
      loop do
        sleep 60
        flush
      end
    end
  end

  class << self
    attr_reader :session_flusher
  end

  module_function

  def boot
    @pool = Concurrent::ThreadPoolExecutor.new(min_threads: 0, max_threads: 1, max_queue: 30, fallback_policy: :discard)
    @session_flusher = SessionFlusher.new
    at_exit { close }
  end

  def close
    @session_flusher.flush
    @session_flusher.kill
    @pool.shutdown
    @pool.wait_for_termination(1)
  end

  def current = Thread.current.thread_variable_get(HUB)

  def around(env)
    transaction = AgentDouble::Transaction.of(env, queue_time(env))
    Thread.current.thread_variable_set(HUB, transaction)
    yield
  ensure
    @session_flusher.add
    @pool.post { AgentDouble.report("sentry", [transaction.facts]) }
  end

  # By its size: microseconds, milliseconds or seconds.
  def queue_time(env)
    value = env["HTTP_X_REQUEST_START"].to_s.split(",").first.to_s.strip.delete_prefix("t=")
    return unless value.match?(/\A\d+(\.\d+)?\z/)

    time = value.to_f
    time /= 1000 if time > 10_000_000_000_000
    time /= 1000 if time > 10_000_000_000
    waited = Time.now.to_f - time
    waited unless waited.negative?
  end
end

AgentDouble.install("sentry", Sentry) { Sentry.boot }
