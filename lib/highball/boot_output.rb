# frozen_string_literal: true

require_relative "message"
require_relative "text"

module Highball
  # Keeps the last lines that an application prints while it boots, for the diagnosis. They are still printed. (Output
  # of native extensions and child processes is not seen.)
  class BootOutput
    LINES = 30
    CHARACTERS = 300
    BYTES = LINES * CHARACTERS
    # The most that they take of a message.
    MESSAGE_BYTES = 32 * 1024

    # Wraps `write` of standard output and standard error.
    module Tap
      attr_accessor :highball_output

      def write(*texts)
        highball_output&.add(texts)
        super
      end
    end

    # Wraps `Warning.warn`, which bypasses `write`.
    module WarningTap
      attr_accessor :highball_output

      def warn(message, **options)
        highball_output&.add([message])
        super
      end
    end

    def self.start
      new.tap do |output|
        [$stdout, $stderr].each { |stream| stream.extend(Tap) }
        Warning.extend(WarningTap)
        output.listen(output)
      end
    end

    def initialize
      @sources = [$stdout, $stderr, Warning]
      @text = +""
    end

    def add(texts)
      texts.each { |text| @text << Text.of(last(text.to_s)) }
      @text = last(@text).scrub("") if @text.bytesize > 2 * BYTES
    rescue StandardError
      nil # it has no text; it is printed all the same
    end

    # Stops keeping lines.
    def stop
      listen(nil)
      @text = +""
    end

    def listen(listener)
      @sources.each { |source| source.highball_output = listener }
    end

    # The last lines.
    def to_a
      lines = @text.lines.last(LINES).map { |line| line.chomp[0, CHARACTERS] }
      lines.shift while Message.encode(lines).bytesize > MESSAGE_BYTES
      lines
    end

    private

    def last(text) = text.bytesize > BYTES ? text.byteslice(-BYTES, BYTES) : text
  end
end
