# frozen_string_literal: true

require_relative "log"

module Highball
  # An exception as text, for the log. Never raises, whatever the exception is.
  class ExceptionWords
    # The most lines of a backtrace,
    LINES = 60
    # the most characters of a message,
    CHARACTERS = 8192
    # and the most exceptions that caused one another.
    CAUSES = 5
    # Highball's own calls are left out: they are the same in every backtrace.
    OURS = "#{__dir__}/".freeze

    def initialize(exception)
      @exception = exception
    end

    # "ArgumentError: wrong number of arguments"
    def summary = self.class.summary(@exception)

    # The calls that led to it, innermost first, one a line. nil if there are none.
    def backtrace
      lines = @exception.backtrace&.first(LINES) or return
      theirs = lines.reject { |line| line.start_with?(OURS) }
      (theirs.empty? ? lines : theirs).join("\n")
    rescue StandardError
      nil
    end

    # The exceptions that caused it, each with its place. nil if there are none.
    def cause
      causes = []
      exception = @exception
      while (exception = exception.cause) && causes.length < CAUSES
        place = exception.backtrace&.first
        causes << "#{self.class.summary(exception)}#{" (#{place})" if place}"
      end
      causes.empty? ? nil : causes.join("\n")
    rescue StandardError
      nil
    end

    # For Log#error.
    def facts = { error: summary, cause: cause, backtrace: backtrace }

    def self.summary(exception)
      message = message(exception)
      "#{class_name(exception)}: #{message.length > CHARACTERS ? "#{message[0, CHARACTERS]}…" : message}"
    end

    def self.class_name(exception) = exception.class.name || "an exception of a class without name"

    def self.message(exception)
      Log.readable(exception.message)
    rescue StandardError, SystemStackError => e
      "(its message cannot be had: #{e.class})"
    end
  end
end
