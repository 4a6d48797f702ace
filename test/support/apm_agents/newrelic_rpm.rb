# frozen_string_literal: true

require_relative "agent_double"

# As newrelic_rpm 10.5: in a server that it knows to fork, it starts with the first request of a process. In any other,
# it also starts at boot.
module NewRelic
  FORKING = %w[puma passenger unicorn falcon].freeze
  # Earlier times have another unit.
  EARLIEST = Time.utc(2000).to_f
  CURRENT = :newrelic_tracer_state

  @buffer = []
  @lock = Mutex.new
  @wakeup = ConditionVariable.new
  @after_fork_lock = Mutex.new

  module_function

  def boot
    @dispatcher = ENV.fetch("NEW_RELIC_DISPATCHER") { discovered }.to_s
    start unless FORKING.include?(@dispatcher)
  end

  def discovered
    return "puma" if defined?(::Puma) && File.basename($PROGRAM_NAME) == "puma"

    "webrick" if defined?(::WEBrick::VERSION)
  end

  def start
    @pid = Process.pid
    @started = true
    at_exit { shutdown }
    @thread = Thread.new { work }
  end

  def work
    AgentDouble.report("newrelic", [{ what: "connect", dispatcher: @dispatcher }])
    @connected = true
    until @stopping
      @lock.synchronize { @wakeup.wait(@lock, AgentDouble::MINUTE) unless @stopping }
      harvest
    end
  end

  # Keeps the connection for the next harvest, by default.
  def harvest
    batch = @lock.synchronize { @buffer.shift(@buffer.length) }
    return if batch.empty?

    @connection ||= AgentDouble::Connection.new("newrelic")
    batch.each { |transaction| @connection.report(transaction.facts) }
    @connection = @connection.close if ENV["NEW_RELIC_AGGRESSIVE_KEEPALIVE"] == "false"
  end

  # Each process connects for itself, and leaves to its parent what that has not sent yet.
  def restart_in_child
    @after_fork_lock.synchronize do
      next if @pid == Process.pid

      @buffer = []
      start
    end
  end

  def shutdown
    return unless @started

    @started = nil
    @lock.synchronize do
      @stopping = true
      @wakeup.signal
    end
    @thread.join(3)
    harvest if @connected
  end

  def current = Thread.current[CURRENT]

  def around(env)
    restart_in_child
    transaction = Thread.current[CURRENT] = AgentDouble::Transaction.of(env, queue_time(env))
    yield
  ensure
    Thread.current[CURRENT] = nil
    @lock.synchronize { @buffer << transaction }
  end

  # Of all times, the earliest counts.
  def queue_time(env)
    values = env.values_at("HTTP_X_REQUEST_START", "HTTP_X_QUEUE_START", "HTTP_X_MIDDLEWARE_START").compact
    times = values.filter_map do |value|
      number = value[/\A\s*([\d.]+)\s*\z/, 1] || value[/t=([\d.]+)/, 1]
      [1_000_000, 1000, 1].map { |unit| number.to_f / unit }.find { |time| time > EARLIEST }
    end
    times.min&.then { |start| [Time.now.to_f - start, 0].max }
  end
end

AgentDouble.install("newrelic", NewRelic) { NewRelic.boot }
