# frozen_string_literal: true

module Highball
  # The one place where foreign strings become text: messages, paths, names and lines of files may hold any bytes, in
  # any encoding, and Ruby raises where such strings are joined or matched.
  module Text
    # Bytes that are UTF-8 if they are anything.
    PLAIN = [Encoding::UTF_8, Encoding::US_ASCII, Encoding::BINARY].freeze

    # What does something in a terminal or to a reader, instead of being read. crates/text declares the same.
    HIDDEN = Regexp.union(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/, /[\u061c\u200b\u200e\u200f\u2028-\u202e]/,
                          /[\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/)

    # What is looked at of a file whose lines are searched.
    FILE_BYTES = 256 * 1024

    module_function

    # The value as valid UTF-8. Bytes that are none are written as `\xE9`. Raises only what the value's own `to_s`
    # raises.
    def of(value)
      text = String.new(value.to_s) # without the methods of a subclass
      return text if text.encoding == Encoding::UTF_8 && text.valid_encoding?

      text = utf8(text)
      text.valid_encoding? ? text : text.scrub { |bytes| bytes.unpack("C*").map { |byte| format('\x%02X', byte) }.join }
    end

    # The same with hidden characters as escapes: `\e`, `\u{9b}`. Lines stay.
    def visible(value)
      of(value).gsub(HIDDEN) do |char|
        next char if char == "\n"

        char.ascii_only? ? char.inspect[1..-2] : format('\u{%x}', char.ord)
      end
    end

    # The beginning of a text, in at most this number of bytes.
    def cut(text, bytes) = text.bytesize <= bytes ? text : text.byteslice(0, bytes).scrub("")

    # The beginning of a file; empty if it cannot be read.
    def read(path, bytes)
      File.file?(path) ? of(File.binread(path, bytes).to_s) : ""
    rescue SystemCallError
      ""
    end

    # Its first lines.
    def lines(path) = read(path, FILE_BYTES).lines

    # The index of the first line that is not UTF-8, or else of the first that is not ASCII; nil if there is none.
    def strange_line(path)
      lines = File.binread(path, FILE_BYTES).to_s.force_encoding(Encoding::UTF_8).lines
      lines.index { |line| !line.valid_encoding? } || lines.index { |line| !line.ascii_only? }
    end

    def utf8(text)
      return text.force_encoding(Encoding::UTF_8) if PLAIN.include?(text.encoding)

      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
    rescue EncodingError # Ruby cannot convert this encoding to UTF-8
      text.force_encoding(Encoding::UTF_8)
    end
    private_class_method :utf8
  end
end
