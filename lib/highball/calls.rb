# frozen_string_literal: true

module Highball
  # A backtrace, innermost call first, without the calls that are the same in every backtrace.
  class Calls
    NOISE = %r{\A(?:<internal:|#{Regexp.escape(__dir__)}/)|/bundler(?:-[\d.]+)?/lib/bundler/|/rubygems/}
    # "/path/file.rb:12: syntax error" and "/path/file.rb:12:in `x'"
    PLACE = /\A(?<file>[^\n]+?):(?<line>\d+)(?::|\z)/
    # The most of a line, in bytes.
    BYTES = 512

    # File and line that a line of a backtrace, or a message, begins with; nil if it does not.
    def self.split(line)
      match = PLACE.match(line.to_s) and [match[:file], match[:line].to_i]
    end

    # root:: the folder of the application.
    def initialize(backtrace, root)
      @lines = (backtrace || []).grep_v(NOISE)
      @root = root
    end

    # The innermost calls, at most this number of them.
    def first(lines) = @lines.first(lines).map { |line| line.byteslice(0, BYTES) }

    # File and line of the innermost call of the application itself; nil if there is none.
    def innermost
      Calls.split(@lines.find { |line| line.start_with?("#{@root}/") && !line.start_with?("#{@root}/vendor/") })
    end

    # File and line to look at first.
    def place = innermost || Calls.split(@lines.first)
  end
end
