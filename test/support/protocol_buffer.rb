# frozen_string_literal: true

# Reads protocol buffers without their definition.
module ProtocolBuffer
  # The values of each field, by its number: numbers, and Strings for texts and messages.
  def self.decode(bytes)
    fields = Hash.new { |all, field| all[field] = [] }
    at = 0
    while at < bytes.bytesize
      key, at = varint(bytes, at)
      value, at = varint(bytes, at)
      if key & 7 == 2
        raise "a field is cut off" if at + value > bytes.bytesize

        value, at = bytes.byteslice(at, value), at + value
      end
      fields[key >> 3] << value
    end
    fields.default_proc = nil
    fields
  end

  # Packed numbers.
  def self.numbers(bytes)
    numbers = []
    at = 0
    while at < bytes.bytesize
      number, at = varint(bytes, at)
      numbers << number
    end
    numbers
  end

  def self.varint(bytes, at)
    number = shift = 0
    loop do
      byte = bytes.getbyte(at) or raise "a number is cut off"
      number |= (byte & 127) << shift
      at += 1
      shift += 7
      return number, at if byte < 128
    end
  end
  private_class_method :varint
end
