# frozen_string_literal: true

require_relative "text"

module Highball
  # Control messages as JSON text. They are encoded by hand, because the first are sent before Bundler has chosen the
  # application's json gem. They are decoded with that gem, because none is received before.
  module Message
    # The most bytes in a packet (PROTOCOL.md of the supervisor).
    LIMIT = 128 * 1024

    SPECIAL = Regexp.union(/["\\\t]/, Text::HIDDEN)
    ESCAPES = { '"' => '\"', "\\" => "\\\\", "\n" => '\n', "\r" => '\r', "\t" => '\t' }.freeze

    module_function

    def encode(value)
      case value
      when nil, true, false, Integer then value.nil? ? "null" : value.to_s
      when Array then "[#{value.map { |item| encode(item) }.join(',')}]"
      when Hash then "{#{value.map { |key, item| "#{encode(key.to_s)}:#{encode(item)}" }.join(',')}}"
      else quote(value.to_s)
      end
    end

    def decode(text)
      require "json"
      ::JSON.parse(text, symbolize_names: true)
    end

    def quote(text)
      "\"#{Text.of(text).gsub(SPECIAL) { |char| ESCAPES[char] || escape(char) }}\""
    end

    def escape(char) = char.encode(Encoding::UTF_16BE).unpack("n*").map { |unit| format('\u%04x', unit) }.join

    # A path, of whatever bytes: the supervisor gets it as it is.
    def path(path)
      text = path.to_s.dup.force_encoding(Encoding::UTF_8)
      text.valid_encoding? ? text : text.bytes
    end
  end
end
