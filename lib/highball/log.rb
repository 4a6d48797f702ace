# frozen_string_literal: true

require_relative "message"
require_relative "text"

module Highball
  # Event lines on standard error, in the same form as Highball's own: for people a line with the event and its facts as
  # `name=value` (long ones below it, indented), for programs a JSON object.
  class Log
    # Facts longer than this, in characters, go on separate lines.
    INLINE = 60

    # format:: "human" or "json".
    # facts:: facts that are part of every event.
    def initialize(format: "human", out: $stderr, **facts)
      @json = format == "json"
      @out = out
      @facts = facts
    end

    # The value as valid UTF-8, with hidden characters as escapes. Lines stay.
    def self.readable(value) = Text.visible(value)

    # Logs an error. Facts that are nil are left out.
    def error(event, **facts) = write("error", event, facts)

    # Logs something that is no error.
    def info(event, **facts) = write("info", event, facts)

    private

    def write(level, event, facts)
      facts = @facts.merge(facts).compact
      facts.transform_values! { |value| value.is_a?(Integer) ? value : Log.readable(value) }
      time = Time.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
      # In one write, so that lines of several processes do not mix.
      @out.write(@json ? json(time, level, event, facts) : human(time, level, event, facts))
    rescue IOError, SystemCallError
      nil # standard error is closed: there is no other place for it
    end

    def json(time, level, event, facts)
      "#{Message.encode({ time: time, level: level, message: event, **facts })}\n"
    end

    def human(time, level, event, facts)
      below, beside = facts.partition { |_, value| value.to_s.include?("\n") || value.to_s.length > INLINE }
      line = "#{time} #{level.upcase.rjust(5)} #{event}#{beside.map { |name, value| " #{name}=#{word(value)}" }.join}\n"
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
