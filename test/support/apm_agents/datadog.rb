# frozen_string_literal: true

require "securerandom"
require_relative "agent_double"

# As datadog 2.42: a hook on Process._fork gives each process an identity and restarts the telemetry's thread. The
# writer starts with the first trace of a process. Its threads are marked as safe to be lost in a fork.
module Datadog
  # The end of a list of hooks.
  module AfterFork
    def _fork = super.tap { |pid| Datadog.after_fork if pid.zero? }
  end

  # Sends traces every second, and at the end.
  class Writer
    def initialize
      @after_fork_lock = Mutex.new
    end

    def write(trace)
      @after_fork_lock.synchronize { start unless @pid == Process.pid }
      @lock.synchronize { @buffer << trace }
    end

    def stop
      return unless @thread

      @lock.synchronize do
        @run = false
        @shutdown.signal
      end
      @thread.join(1)
    end

    private

    def start
      @pid = Process.pid
      @buffer = []
      @lock = Mutex.new
      @shutdown = ConditionVariable.new
      @run = true
      @thread = Datadog.thread { perform }
    end

    def perform
      loop do
        batch, last = @lock.synchronize { [@buffer.shift(@buffer.length), !@run] }
        AgentDouble.report("datadog", batch.map(&:facts)) unless batch.empty?
        return if last

        @lock.synchronize { @shutdown.wait(@lock, AgentDouble::MINUTE) if @run }
      end
    end
  end

  CURRENT = :datadog_context_1

  @writer = Writer.new

  module_function

  def thread(&work)
    Thread.new(&work).tap do |thread|
      thread.name = "Datadog"
      thread.thread_variable_set(:fork_safe, true)
    end
  end

  def boot
    Process.singleton_class.prepend(AfterFork)
    @id = SecureRandom.uuid
    start_telemetry
  end

  def after_fork
    @parent = @id
    @id = SecureRandom.uuid
    start_telemetry
  end

  def start_telemetry
    thread do
      sleep AgentDouble::MINUTE / 3
      facts = { what: "started", id: @id, parent: @parent, service: File.basename($PROGRAM_NAME, ".*") }
      AgentDouble.report("datadog", [facts])
    end
  end

  def shutdown! = @writer.stop

  def current = Thread.current[CURRENT]

  def around(env)
    trace = Thread.current[CURRENT] = AgentDouble::Transaction.of(env, queue_time(env))
    yield
  ensure
    Thread.current[CURRENT] = nil
    @writer.write(trace)
  end

  # Ten digits of seconds, and the rest.
  def queue_time(env)
    digits = (env["HTTP_X_REQUEST_START"] || env["HTTP_X_QUEUE_START"] || return).delete("^0-9")
    start = "#{digits[0, 10]}.#{digits[10, 6]}".to_f
    Time.now.to_f - start if start >= 1_000_000_000
  end
end

at_exit { Datadog.shutdown! }
AgentDouble.install("datadog", Datadog) { Datadog.boot }
