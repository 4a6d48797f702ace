# frozen_string_literal: true

require_relative "agent_double"

# As elastic-apm 4.9: a thread sends what a queue holds, over a connection that it keeps open. It starts at boot, and
# again with the first request of another process. At the end it sends the rest. It reads no time in the queue.
module ElasticAPM
  CURRENT = :__elastic_instrumenter_transaction_key
  STOP = Object.new

  @queue = SizedQueue.new(256)
  @lock = Mutex.new

  module_function

  def start
    @pid = Process.pid
    ensure_worker
    @queue.push({ what: "metrics" }, true)
  end

  def ensure_worker
    @lock.synchronize { @thread = Thread.new { work_forever } unless @thread&.alive? }
  end

  def work_forever
    connection = nil
    while (facts = @queue.pop) != STOP
      connection ||= AgentDouble::Connection.new("elastic")
      connection.report(facts)
    end
    connection&.close
  end

  def stop
    @queue.push(STOP, true)
    @thread.join(5)
  end

  def current = Thread.current[CURRENT]

  def around(env)
    start unless @pid == Process.pid
    transaction = Thread.current[CURRENT] = AgentDouble::Transaction.of(env, nil)
    yield
  ensure
    Thread.current[CURRENT] = nil
    @queue.push(transaction.facts, true)
  end
end

at_exit { ElasticAPM.stop }
AgentDouble.install("elastic", ElasticAPM) { ElasticAPM.start }
