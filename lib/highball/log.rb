# frozen_string_literal: true

require_relative "message"

module Highball
  # Event lines on standard error in the form of Highball's own: for people one line with what happened and its
  # facts as `name=value` (long ones below it, indented), for programs one JSON object.
  class Log
    # Facts longer than this, in characters, stand on lines of their own.
    INLINE = 60
    CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/

    # format:: "human" or "json".
    # facts:: what every event of this log has in common.
    def initialize(format: "human", out: $stderr, **facts)
      @json = format == "json"
      @out = out
      @facts = facts
    end

    # Text that can be joined with any other, whatever its bytes are, and that cannot move the cursor about.
    def self.readable(value)
      text = value.to_s
      text = text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace) unless text.encoding == Encoding::BINARY
      text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(CONTROLS) { |char| char.inspect[1..-2] }
    rescue EncodingError # there is no way from this encoding to UTF-8
      readable(text.b)
    end

    # Something went wrong. A fact that is nil is left out.
    def error(event, **facts)
      facts = @facts.merge(facts).compact
      facts.transform_values! { |value| value.is_a?(Integer) ? value : Log.readable(value) }
      time = Time.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
      # In one write, so that lines of several processes do not mix.
      @out.write(@json ? json(time, event, facts) : human(time, event, facts))
    rescue IOError, SystemCallError
      nil # there is nowhere left to complain
    end

    private

    def json(time, event, facts)
      "#{Message.encode({ time: time, level: 'error', message: event, **facts })}\n"
    end

    def human(time, event, facts)
      below, beside = facts.partition { |_, value| value.to_s.include?("\n") || value.to_s.length > INLINE }
      line = "#{time} ERROR #{event}#{beside.map { |name, value| " #{name}=#{word(value)}" }.join}\n"
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
