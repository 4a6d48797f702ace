# frozen_string_literal: true

require_relative "app"
require_relative "remedies"

module Highball
  # What went wrong, in the words of the control protocol: an exception as class, message, place and backtrace,
  # and what to do about it.
  class Diagnosis
    MESSAGE_BYTES = 16 * 1024
    BACKTRACE_LINES = 60
    # "/path/file.rb:12: syntax error" and "/path/file.rb:12:in `x'"
    # Frames that are the same in every boot, and say nothing about this one.
    NOISE = %r{\A(?:<internal:|#{Regexp.escape(__dir__)}/)|/bundler(?:-[\d.]+)?/lib/bundler/|/rubygems/}
    PLACE = /\A(?<file>[^\n]+?):(?<line>\d+)(?::|\z)/

    def initialize(exception, root: App::FOLDER)
      @exception = culprit(exception)
      @root = root
    end

    def error
      file, line = place
      { class: @exception.class.name, message: message, file: file, line: line, backtrace: backtrace }
    end

    def remedy = Remedies.for(@exception)

    private

    # `bundler/setup` on a terminal prints its error and exits: the error is what matters.
    def culprit(exception)
      exception.is_a?(SystemExit) && exception.cause ? exception.cause : exception
    end

    def message
      text = @exception.message.to_s
      text = "exit was called, with status #{@exception.status}" if @exception.is_a?(SystemExit)
      text.byteslice(0, MESSAGE_BYTES)
    end

    # The line to look at first: where the parser stumbled, else the innermost line of the application.
    def place
      return split(@exception.message) if @exception.is_a?(SyntaxError) && split(@exception.message)

      split(backtrace.find { |line| of_the_application?(line) } || backtrace.first)
    end

    def split(line)
      match = PLACE.match(line.to_s) and [match[:file], match[:line].to_i]
    end

    def of_the_application?(line)
      line.start_with?("#{@root}/") && !line.start_with?("#{@root}/vendor/")
    end

    def backtrace
      lines = (@exception.backtrace || []).grep_v(NOISE)
      lines.first(BACKTRACE_LINES).map { |line| line.byteslice(0, 1024) }
    end
  end
end
