# frozen_string_literal: true

require_relative "text"

module Highball
  # Control messages as JSON text. They are encoded by hand, because the first are sent before Bundler has chosen the
  # application's json gem. They are decoded with that gem, because none is received before.
  module Message
    # The most bytes in a packet (PROTOCOL.md of the supervisor).
    LIMIT = 128 * 1024

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
      escaped = Text.of(text).gsub(/["\\\u0000-\u001f]/) { |char| ESCAPES[char] || format('\u%04x', char.ord) }
      "\"#{escaped}\""
    end
  end
end
