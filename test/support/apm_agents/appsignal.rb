# frozen_string_literal: true

require "rack/body_proxy"
require_relative "agent_double"

# As appsignal 4.9 and 5.0: a transaction ends when the body is closed, or else after the reply. A native library sends
# it, which `forked` restarts. A thread that measures once a minute runs in the process that has booted, and is marked
# as safe to be lost in a fork. By default nothing happens at exit.
module Appsignal
  CURRENT = :appsignal_transaction

  module_function

  def start
    Thread.new do
      Thread.current.thread_variable_set(:fork_safe, true)
      sleep
    end
    start_extension
  end

  def forked = start_extension

  def start_extension = AgentDouble.report("appsignal", [{ what: "started" }])

  def current = Thread.current[CURRENT]

  def around(env)
    transaction = Thread.current[CURRENT] = AgentDouble::Transaction.of(env, queue_time(env))
    completed = false
    complete = lambda do
      next if completed

      completed = true
      Thread.current[CURRENT] = nil
      AgentDouble.report("appsignal", [transaction.facts])
    end
    (env["rack.after_reply"] ||= []) << complete
    status, headers, body = yield
    [status, headers, Rack::BodyProxy.new(body, &complete)]
  end

  # Milliseconds, if it is not too large for them.
  def queue_time(env)
    digits = (env["HTTP_X_QUEUE_START"] || env["HTTP_X_REQUEST_START"] || return).tr("^0-9", "")
    start = digits.to_i
    start /= 1000 if start > 4_102_441_200_000
    Time.now.to_f - (start / 1000.0) if start >= 946_681_200_000
  end
end

AgentDouble.install("appsignal", Appsignal) { Appsignal.start }
