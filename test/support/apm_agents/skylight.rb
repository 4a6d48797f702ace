# frozen_string_literal: true

require_relative "agent_double"

# As skylight 7.1: a trace ends when the body of the response is closed. A native library sends it; what it does with
# threads is not known, and not here. It reads no time in the queue.
module Skylight
  CURRENT = :__skylight_current_trace

  # Any other call goes to the body.
  class Body
    def initialize(body, &at_end)
      @body = body
      @at_end = at_end
    end

    def close
      return if @closed

      @closed = true
      begin
        @body.close if @body.respond_to?(:close)
      ensure
        @at_end.call
      end
    end

    def each(...) = @body.each(...)

    def respond_to_missing?(name, all = false) = name != :to_ary && @body.respond_to?(name, all)
    def method_missing(name, ...) = name == :to_ary ? super : @body.__send__(name, ...)
  end

  module_function

  def current = Thread.current[CURRENT]

  def around(env)
    trace = Thread.current[CURRENT] = AgentDouble::Transaction.of(env, nil)
    status, headers, body = yield
    [status, headers, Body.new(body) { submit(trace) }]
  end

  def submit(trace)
    Thread.current[CURRENT] = nil
    AgentDouble.report("skylight", [trace.facts])
  end
end

AgentDouble.install("skylight", Skylight)
