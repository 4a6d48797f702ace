# frozen_string_literal: true

module Highball
  class PStore
    # The table of a read-only transaction whose file is known: it copies only the roots that the transaction uses.
    class RootReader
      # entries:: Entry of each root
      def initialize(entries)
        @entries = entries
        @entry = @copy = nil # (An object with up to three variables needs no other memory.)
      end

      # (Most transactions read one root. Its copy needs no hash.)
      def [](name)
        entry = @entries[name] or return
        return @copy if entry.equal?(@entry)
        return (@copies ||= {}.compare_by_identity)[entry] ||= entry.copy if @entry

        @entry = entry
        @copy = entry.copy
      end

      def key?(name) = @entries.key?(name)
      def keys = @entries.keys
    end
  end
end
