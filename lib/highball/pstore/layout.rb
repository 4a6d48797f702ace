# frozen_string_literal: true

require_relative "marshal_scan"

module Highball
  class PStore
    # The bytes of a file as one piece for each root. A commit that changes few of many roots makes only their pieces
    # with Marshal. The file has the same bytes as if Marshal had written all of it.
    #
    # In Marshal's format, a symbol's name is written where the symbol occurs first; later it is its number. So a piece
    # depends on the symbols before it, and later pieces depend on the symbols that it adds. Objects have numbers, too,
    # but these are written only for an object that occurs twice: such a file has no layout.
    class Layout
      # With fewer roots, writing all of them takes no more time.
      FEWEST_ROOTS = 16
      # A root that has more than this part of the file's values is not worth it.
      MOST_PART = 16
      # Neither is a commit that changes more than this part of the roots.
      MOST_CHANGED_PART = 4

      # key::     the bytes of the root's name
      # known::   number of symbols before the root's value
      # defined:: symbols that the value adds
      Place = Struct.new(:key, :known, :defined)

      # The layout of the bytes of a table with these names, nil if they cannot be divided.
      def self.of(bytes, names)
        return if names.size < FEWEST_ROOTS

        places = []
        pieces = []
        scan = MarshalScan.new(bytes)
        header = scan.pairs_of_hash(names.size) do |key, value, known|
          places << Place.new(key, known, scan.symbols.drop(known))
          pieces << (key + value)
        end
        header && new(header, places, pieces, names.each_with_index.to_h, scan)
      end

      def initialize(header, places, pieces, indices, scan)
        @header = header
        @places = places
        @pieces = pieces
        @indices = indices
        @symbols = scan.symbols
        @most_values = scan.values / MOST_PART
      end

      # The layout with these values of some of the roots. Nil if other pieces would change, too.
      #
      # values:: hash of names and values
      def with(values)
        return if values.size > @pieces.size / MOST_CHANGED_PART

        pieces = @pieces.dup
        known = values.all? do |name, value|
          index = @indices[name]
          place = @places[index]
          bytes = bytes_of(value, place)
          pieces[index] = place.key + bytes if bytes
        end
        dup.replace(pieces) if known
      end

      # The bytes of the file.
      def bytes = @header + @pieces.join

      protected

      def replace(pieces)
        @pieces = pieces
        self
      end

      private

      # The bytes of a value at this place.
      def bytes_of(value, place)
        known = @symbols.first(place.known)
        bytes = Marshal.dump([known, value])
        start = Marshal.dump([known]).bytesize
        scan = MarshalScan.new(bytes, start, @most_values)
        bytes.byteslice(start..) if scan.whole? && scan.symbols == place.defined
      end
    end
  end
end
