# frozen_string_literal: true

module Highball
  class PStore
    # Reads over bytes in Marshal's format (version 4.8) without making their objects: where each ends, and which
    # symbols it adds. It knows the types of plain values. It gives up at others, also at references to objects, and at
    # what Marshal may refer to if there is an equal one: floats, large integers, and strings as keys of hashes.
    class MarshalScan
      VERSION_BYTES = 2
      DEEPEST = 100
      TYPE_NIL, TYPE_TRUE, TYPE_FALSE, TYPE_INTEGER, TYPE_LARGE_INTEGER, TYPE_STRING, TYPE_WITH_VARIABLES, TYPE_SYMBOL,
        TYPE_SYMBOL_NUMBER, TYPE_ARRAY, TYPE_HASH = "0TFil\"I:;[{".bytes
      # Pairs of bytes in an integer that is no object, so that it has no number.
      MOST_INTEGER_PAIRS = 3

      # Symbols that are added, in this order.
      attr_reader :symbols
      # The number of values.
      attr_reader :values

      # at::          where the value begins
      # most_values:: gives up after this number
      def initialize(bytes, at = VERSION_BYTES, most_values = Float::INFINITY)
        @bytes = bytes
        @at = at
        @most_values = most_values
        @symbols = []
        @values = 0
      end

      # Whether the bytes are one value, to their end.
      def whole?
        known = catch(:unknown) do
          skip(DEEPEST)
          true
        end
        known && @at == @bytes.bytesize
      end

      # Of a hash of this size: yields the bytes of each key and value, and the number of symbols before the value.
      # Returns the bytes before the first pair, or nil after giving up.
      def pairs_of_hash(size)
        catch(:unknown) do
          throw :unknown unless byte == TYPE_HASH && long == size

          header = @bytes.byteslice(0, @at)
          size.times do
            key = skipped
            known = @symbols.size
            yield key, skipped, known
          end
          header if @at == @bytes.bytesize
        end
      end

      private

      def skipped
        start = @at
        skip(DEEPEST)
        @bytes.byteslice(start, @at - start)
      end

      def skip(depth)
        throw :unknown if depth.zero? || (@values += 1) > @most_values

        case byte
        when TYPE_NIL, TYPE_TRUE, TYPE_FALSE then nil
        when TYPE_INTEGER, TYPE_SYMBOL_NUMBER then long
        when TYPE_STRING then skip_bytes(long)
        when TYPE_SYMBOL then add_symbol
        when TYPE_WITH_VARIABLES then with_variable
        when TYPE_ARRAY then long.times { skip(depth - 1) }
        when TYPE_HASH then long.times { skip_pair(depth - 1) }
        when TYPE_LARGE_INTEGER then skip_integer
        else throw :unknown
        end
      end

      # (Ruby keeps equal strings that are keys of hashes as one object, to which Marshal refers.)
      def skip_pair(depth)
        throw :unknown if [TYPE_STRING, TYPE_WITH_VARIABLES].include?(@bytes.getbyte(@at))

        2.times { skip(depth) }
      end

      # A string in UTF-8 or ASCII has one variable, which is true or false. (The name of another encoding is an object,
      # to which Marshal may refer. A symbol in another one is not known either.)
      def with_variable
        throw :unknown unless byte == TYPE_STRING

        skip_bytes(long)
        throw :unknown unless long == 1

        skip(1)
        throw :unknown unless [TYPE_TRUE, TYPE_FALSE].include?(byte)
      end

      def skip_integer
        byte # the sign
        pairs = long
        throw :unknown if pairs > MOST_INTEGER_PAIRS

        skip_bytes(2 * pairs)
      end

      def add_symbol
        size = long
        name = @bytes.byteslice(@at, size)
        throw :unknown unless name.ascii_only?

        @symbols << name.to_sym
        skip_bytes(size)
      end

      def skip_bytes(size)
        @at += size
      end

      def byte
        byte = @bytes.getbyte(@at)
        @at += 1
        byte
      end

      # An integer in one to five bytes, as Marshal's w_long writes it. (Of negative ones, only the length counts here.)
      def long
        first = byte
        return first - 5 if first.between?(5, 127)
        return 0 if first.zero? || first.between?(128, 251)

        count = first < 5 ? first : 256 - first
        number = count.times.sum { |index| @bytes.getbyte(@at + index) << (8 * index) }
        @at += count
        number
      end
    end
  end
end
