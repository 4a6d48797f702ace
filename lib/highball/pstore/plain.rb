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

      # What copies an array or a hash.
      class Copier
        # texts:: the index or key of each string, followed by a frozen copy of it, whose copies share the bytes until
        #         one is changed
        # parts:: the index or key of each other mutable part, followed by what copies it
        def initialize(original, texts, parts)
          @original = original
          @list = original.is_a?(Array)
          @texts = texts
          @parts = parts
          @texts_end = texts.size
          @parts_end = parts.size
        end

        # (Of few parts, these loops take half the time of blocks.)
        def copy
          copy = @list ? [*@original] : @original.merge
          at = 0
          while at < @texts_end
            copy[@texts[at]] = +@texts[at + 1]
            at += 2
          end
          at = 0
          while at < @parts_end
            copy[@parts[at]] = @parts[at + 1].copy
            at += 2
          end
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
          return object.dup.freeze if object.instance_of?(String)
          return collection(object, object.each_index.zip(object), seen, depth) if object.instance_of?(Array)
          return collection(object, object, seen, depth) if object.instance_of?(Hash) && usual?(object)

          throw :other
        end

        def collection(object, pairs, seen, depth)
          mutable = pairs.filter_map do |key, value|
            copier = part(value, seen, depth - 1)
            [key, copier] if copier
          end
          texts, parts = mutable.partition { |_, copier| copier.is_a?(String) }
          Copier.new(object, texts.flatten(1), parts.flatten(1))
        end

        def usual?(hash)
          !hash.default && !hash.default_proc && !hash.compare_by_identity? && !Hash.ruby2_keywords_hash?(hash) &&
            hash.each_key.all? { |key| RootTable.usual?(key) && (!key.is_a?(String) || key.instance_variables.empty?) }
        end
      end
    end
  end
end
