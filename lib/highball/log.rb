# frozen_string_literal: true

require_relative "message"
require_relative "text"

module Highball
  # Event lines on standard error, in the same form as Highball's own: for people a line with the event and its facts as
  # `name=value` (long ones below it, indented), for programs a JSON object.
  class Log
    # Facts longer than this, in characters, go on separate lines.
    INLINE = 60
    # What happens: the event's name, which programs read (docs/log-events.md), and the message for people.
    EVENTS = {
      broadcast_dropped: "a broadcast of another machine was dropped",
      broadcasts_missed: "broadcasts of other machines may have been missed while no worker received them",
      cable_bus_failed: "cannot receive broadcasts of other machines; trying again",
      cable_bus_returned: "receiving broadcasts of other machines again",
      callback_failed: "a callback raised an exception after the response",
      diagnosis_failed: "Highball could not diagnose an exception; it is shown as it is",
      exception_raised: "the application raised an exception",
      file_not_sent: "the file that the application names is not sent",
      fiber_computes: "a request on a fiber computes, or waits in a way that keeps the worker's other fibers waiting",
      fibers_ended: "the fibers' thread has ended: its requests are cut off",
      fibers_unsafe: "this does not go well with fibers",
      hub_file_not_written: "consoles, jobs and scripts of this user cannot publish messages",
      pool_too_small: "the worker gets no more threads: a pool has no connections for them",
      pool_unreadable: "the worker gets no more threads: a pool cannot be looked at",
      slow_requests_not_sampled: "slow requests are not sampled any more",
      stream_keeps_thread: "a streaming response keeps its thread",
      thread_interrupted: "a serving thread was interrupted",
      thread_not_replaced: "cannot start a thread to replace a streaming one",
      thread_refused: "the system refuses another thread"
    }.freeze

    # format:: "human" or "json".
    # facts:: facts that are part of every event.
    def initialize(format: "human", out: $stderr, **facts)
      @json = format == "json"
      @out = out
      @facts = facts
    end

    # The value as valid UTF-8, with hidden characters as escapes. Lines stay.
    def self.readable(value) = Text.visible(value)

    # Logs an error: the name of its event, and facts (nil: left out).
    def error(event, **facts) = write("error", event, facts)

    # Logs something that is no error.
    def info(event, **facts) = write("info", event, facts)

    private

    def write(level, event, facts)
      facts = @facts.merge(facts).compact
      facts.transform_values! { |value| value.is_a?(Integer) ? value : Log.readable(value) }
      time = Time.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
      # In one write, so that lines of several processes do not mix.
      message = EVENTS.fetch(event)
      @out.write(@json ? json(time, level, event, message, facts) : human(time, level, message, facts))
    rescue IOError, SystemCallError
      nil # standard error is closed: there is no other place for it
    end

    def json(time, level, event, message, facts)
      "#{Message.encode({ time: time, level: level, event: event, message: message, **facts })}\n"
    end

    def human(time, level, message, facts)
      below, beside = facts.partition { |_, value| value.to_s.include?("\n") || value.to_s.length > INLINE }
      beside = beside.map { |name, value| " #{name}=#{word(value)}" }.join
      line = "#{time} #{level.upcase.rjust(5)} #{message}#{beside}\n"
      line + below.map { |name, value| "    #{name}: #{indented(value)}\n" }.join
    end

    def word(value)
      text = value.to_s
      text.empty? || text.include?(" ") ? text.inspect : text
    end

    def indented(text)
      text.lines(chomp: true).reject { |line| line.strip.empty? }.join("\n        ")
    end
  end
end
