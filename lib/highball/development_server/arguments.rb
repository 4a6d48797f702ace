# frozen_string_literal: true

require_relative "../spelling"
require_relative "option_table"

module Highball
  module DevelopmentServer
    # The command line or a configuration says something that Highball does not know.
    class Invalid < StandardError
    end

    # A command line of `highball`, read as on Linux.
    class Arguments
      # Of `doctor`.
      JSON = "--json"
      MEANINGS = { "-h" => "help", "--help" => "help", "-V" => "version", "--version" => "version" }.freeze

      # The command, the values of each option by its name, and the paths.
      attr_reader :command, :options, :paths

      def initialize(words)
        @words = words.dup
        @command = COMMANDS.include?(@words.first) ? @words.shift : "serve"
        @options = {}
        @paths = []
        take(@words.shift) until @words.empty?
      end

      # Whether `doctor` is to print JSON.
      def json? = @json

      private

      def take(word)
        return @command = MEANINGS[word] if MEANINGS.key?(word)
        return @json = true if word == JSON
        return @paths.concat(@words.slice!(0..)) if word == "--"
        return @paths << word if word == "-" || !word.start_with?("-")

        word.start_with?("--") ? take_long(word) : take_letter(word)
      end

      def take_long(word)
        long, value = word.split("=", 2)
        name = LONG[long] or raise Invalid, unknown(long)
        value ||= OPTIONS[name][:flag] ? "on" : next_word(long)
        add(name, value)
      end

      # `-p 4000`, `-p4000` or `-p=4000`.
      def take_letter(word)
        name = LETTERS[word[1]] or raise Invalid, unknown(word)
        rest = word[2..].delete_prefix("=")
        add(name, rest.empty? ? next_word(word) : rest)
      end

      def add(name, value) = (@options[name] ||= []) << value

      def next_word(option)
        @words.shift or raise Invalid, "#{option} needs a value"
      end

      def unknown(word)
        meant = Spelling.near(word, LONG.keys)
        "there is no option #{word}#{"; did you mean #{meant}?" if meant}"
      end
    end
  end
end
