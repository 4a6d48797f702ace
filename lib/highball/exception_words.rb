# frozen_string_literal: true

require_relative "calls"
require_relative "log"
require_relative "text"

module Highball
  # An exception as text. All that is shown, logged or matched of an exception is asked for here. Never raises: the
  # exception's methods may be the application's own, and may raise or return anything.
  class ExceptionWords
    # The most lines of a backtrace in the log,
    LINES = 60
    # the most characters of a message there,
    CHARACTERS = 8192
    # and the most exceptions that caused one another.
    CAUSES = 5
    # The most bytes of a message and of a class's name that are looked at.
    MESSAGE_BYTES = 16 * 1024
    NAME_BYTES = 256
    # The most guesses of a name that is meant.
    GUESSES = 3
    # Highball's own calls are left out: they are the same in every backtrace.
    OURS = "#{Text.of(__dir__)}/".freeze

    # These may be overridden.
    CLASS_OF = Kernel.instance_method(:class)
    NAME_OF = Module.instance_method(:name)
    ANCESTORS_OF = Module.instance_method(:ancestors)
    BYTES_OF = String.instance_method(:byteslice)

    def self.of(exception) = self === exception ? exception : new(exception) # rubocop:disable Style/CaseEquality
    def self.summary(exception) = of(exception).summary

    def initialize(exception)
      @exception = exception
    end

    # "ArgumentError: wrong number of arguments"
    def summary
      "#{class_name}: #{message.length > CHARACTERS ? "#{message[0, CHARACTERS]}…" : message}"
    end

    def class_name = @class_name ||= name_of(CLASS_OF.bind_call(@exception)) || "an exception of a class without name"

    # The names of its class and of all that this inherits from.
    def ancestors
      @ancestors ||= ANCESTORS_OF.bind_call(CLASS_OF.bind_call(@exception)).filter_map { |one| name_of(one) }
    end

    # The beginning of its message.
    def message
      @message ||= begin
        message = @exception.message
        message = message.to_s unless string?(message)
        readable(message, MESSAGE_BYTES)
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, it is no reason to say nothing
        "(its message cannot be had: #{name_of(CLASS_OF.bind_call(e))})"
      end
    end

    # The lines of its backtrace.
    def lines
      @lines ||= Array(ask { @exception.backtrace }).first(Calls::MOST).filter_map { |line| text(line) }
    end

    # The same as Thread::Backtrace::Location.
    def locations = Array(ask { @exception.backtrace_locations })

    # The calls that led to it, innermost first, one a line. nil if there are none.
    def backtrace
      first = lines.first(LINES)
      theirs = first.reject { |line| line.start_with?(OURS) }
      words = theirs.empty? ? first : theirs
      words.empty? ? nil : words.join("\n")
    end

    # The exceptions that caused it, the nearest first.
    def causes
      @causes ||= begin
        found = [@exception]
        while found.length <= CAUSES && (cause = ask { found.last.cause })
          break if found.any? { |one| one.equal?(cause) } || !exception?(cause)

          found << cause
        end
        found.drop(1).map { |one| ExceptionWords.new(one) }
      end
    end

    # The same as text, each with its place. nil if there are none.
    def cause
      words = causes.map { |cause| "#{cause.summary}#{" (#{cause.lines.first})" if cause.lines.any?}" }
      words.empty? ? nil : words.join("\n")
    end

    # For Log#error.
    def facts = { error: summary, cause: cause, backtrace: backtrace }

    def is?(name) = ancestors.include?(name)

    # The file that a LoadError names, or the source that a parser of YAML has failed at, and its line.
    def path = text(ask { @exception.path })
    def file = text(ask { @exception.file })
    def line = ask { Integer(@exception.line) }

    # The status of a SystemExit.
    def status = ask { Integer(@exception.status) }

    # Names that may be meant.
    def guesses = Array(ask { @exception.corrections }).first(GUESSES).filter_map { |guess| text(guess) }

    # What remedies quote of the exception: it may be secret. The rest of them is never masked.
    def quoted = @quoted ||= []

    # Notes that a remedy quotes this.
    def quote(text) = text.tap { quoted << text if text }

    private

    # What the exception answers; nil where it does not know, or raises.
    def ask
      yield
    rescue Exception # rubocop:disable Lint/RescueException -- the method may be the application's, and raise anything
      nil
    end

    def text(value) = ask { value.nil? ? nil : readable(value.to_s, Calls::BYTES) }

    def readable(value, bytes)
      Text.cut(Log.readable(value.bytesize > bytes ? whole(BYTES_OF.bind_call(value, 0, bytes)) : value), bytes)
    end

    # Without the part of a character that was cut off at the end.
    def whole(text)
      (0..3).map { |part| text.byteslice(0, text.bytesize - part) }.find(&:valid_encoding?) || text
    end

    def name_of(one) = (name = NAME_OF.bind_call(one)) && readable(name, NAME_BYTES)
    def string?(value) = String === value # rubocop:disable Style/CaseEquality -- is_a? may be overridden
    def exception?(value) = Exception === value # rubocop:disable Style/CaseEquality
  end
end
