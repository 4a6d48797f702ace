# frozen_string_literal: true

require_relative "text"

module Highball
  # A backtrace, innermost call first, without the calls that are the same in every backtrace.
  class Calls
    NOISE = %r{\A(?:<internal:|#{Regexp.escape(Text.of(__dir__))}/)|/bundler(?:-[\d.]+)?/lib/bundler/|/rubygems/}
    # "/path/file.rb:12: syntax error" and "/path/file.rb:12:in `x'"
    PLACE = /\A(?<file>[^\n]+?):(?<line>\d+)(?::|\z)/
    # The most lines that are looked at: where a method has called itself, there may be many.
    MOST = 20_000
    # The most of a line, in bytes.
    BYTES = 4096
    # The same of a shown line.
    SHOWN_BYTES = 512

    # File and line that a line of a backtrace, or a message, begins with; nil if it does not.
    def self.split(line)
      match = PLACE.match(line.to_s) and [match[:file], match[:line].to_i]
    end

    # backtrace:: lines, of whatever bytes
    # root:: the folder of the application
    def initialize(backtrace, root)
      lines = (backtrace || []).first(MOST).map { |line| Text.cut(Text.of(line), BYTES) }
      @lines = lines.grep_v(NOISE)
      @root = Text.of(root)
    end

    # The innermost calls, at most this number of them.
    def first(lines) = @lines.first(lines).map { |line| Text.cut(line, SHOWN_BYTES) }

    # File and line of the innermost call of the application itself; nil if there is none.
    def innermost
      Calls.split(@lines.find { |line| line.start_with?("#{@root}/") && !line.start_with?("#{@root}/vendor/") })
    end

    # File and line to look at first.
    def place = innermost || Calls.split(@lines.first)
  end
end
