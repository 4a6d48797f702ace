# frozen_string_literal: true

module Highball
  class PStore
    # Copies a value of hashes, arrays, strings and immutable objects in less time than Marshal takes. What it copies
    # from is never given to the application.
    module Plain
      DEEPEST = 32

      # What copies this object, or nil if it has a part of another kind, or the same part twice: copies must share
      # what Marshal's share.
      def self.of(object)
        catch(:other) { part(object, {}.compare_by_identity, DEEPEST) }
      end

      # A string. Its copies share the bytes until one is changed.
      class Text
        def initialize(original)
          @original = original.dup.freeze
        end

        def copy = +@original
      end

      # An array. `parts` has the indices of its mutable items, and what copies these.
      class List
        def initialize(original, parts)
          @original = original
          @parts = parts
        end

        def copy
          copy = [*@original]
          @parts.each { |index, part| copy[index] = part.copy }
          copy
        end
      end

      # A hash. `parts` has the keys of its mutable values, and what copies these.
      class Table
        def initialize(original, parts)
          @original = original
          @parts = parts
        end

        def copy
          copy = @original.merge
          @parts.each { |key, part| copy[key] = part.copy }
          copy
        end
      end

      class << self
        private

        # (An immutable part needs nothing: its hash or array has it.)
        def part(object, seen, depth)
          case object
          when nil, true, false, Integer, Symbol, Float then return
          end
          throw :other if depth.zero? || seen[object] || object.instance_variables.any?

          seen[object] = true
          return Text.new(object) if object.instance_of?(String)
          return List.new(object, parts(object.each_index.zip(object), seen, depth)) if object.instance_of?(Array)
          return Table.new(object, parts(object, seen, depth)) if object.instance_of?(Hash) && usual?(object)

          throw :other
        end

        def parts(pairs, seen, depth)
          pairs.filter_map do |key, value|
            copier = part(value, seen, depth - 1)
            [key, copier] if copier
          end
        end

        def usual?(hash)
          !hash.default && !hash.default_proc && !hash.compare_by_identity? && !Hash.ruby2_keywords_hash?(hash) &&
            hash.each_key.all? { |key| RootTable.usual?(key) && (!key.is_a?(String) || key.instance_variables.empty?) }
        end
      end
    end
  end
end
