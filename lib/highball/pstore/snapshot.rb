# frozen_string_literal: true

require_relative "whole_table"
require_relative "root_table"

module Highball
  class PStore
    # What a store knows of its file between transactions: the bytes, and after some transactions the roots.
    class Snapshot
      # entries::   Entry of each root, nil if the table is not divided (yet)
      # divisible:: false if the roots share objects, for example, so that they cannot be copied one by one
      def initialize(bytes, entries = nil, divisible: true)
        @bytes = bytes if entries.nil? || bytes.bytesize <= SMALL_BYTES
        @entries = entries
        @divisible = divisible
        @uses = 0
      end

      # The table for a transaction. The block parses bytes.
      def table(read_only)
        return RootTable.new(@entries) if @entries && (read_only || !@bytes)
        return whole_table(yield(@bytes)) if !divide_now?(read_only) || !divide(yield(@bytes))

        RootTable.new(@entries)
      end

      # What is known after this commit.
      def after(bytes, entries) = Snapshot.new(bytes, entries, divisible: @divisible)

      private

      def whole_table(hash) = WholeTable.new(hash, @bytes)

      def divide_now?(read_only)
        return false if !@divisible || @entries || (!read_only && @bytes.bytesize <= SMALL_BYTES)

        (@uses += 1) >= UNCHANGED_BEFORE_DIVIDED
      end

      def divide(hash)
        @entries = RootTable.divide(hash)
        @divisible = false unless @entries
        @bytes = nil if @entries && @bytes.bytesize > SMALL_BYTES
        @entries
      end
    end
  end
end
