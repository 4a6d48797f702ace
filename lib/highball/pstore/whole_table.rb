# frozen_string_literal: true

module Highball
  class PStore
    # The table of a transaction that has loaded the whole file: of a file that is read for the first time, or whose
    # roots share objects.
    class WholeTable
      # bytes:: the file's, nil if there is none
      def initialize(hash, bytes)
        @hash = hash
        @bytes = bytes
      end

      def [](name) = @hash[name]
      def key?(name) = @hash.key?(name)
      def keys = @hash.keys

      def []=(name, value)
        @hash[name] = value
      end

      def delete(name) = @hash.delete(name)

      # The bytes of the new file, by the block. Nil if nothing has changed.
      def changes
        new = yield @hash
        return if new == @bytes || (@hash.empty? && @bytes && @bytes.empty?)

        [new, nil]
      end
    end
  end
end
