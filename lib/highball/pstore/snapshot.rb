# frozen_string_literal: true

require_relative "whole_table"
require_relative "root_table"
require_relative "root_reader"
require_relative "layout"

module Highball
  class PStore
    # What a store knows of its file between transactions: the bytes, after some transactions the roots, and after some
    # commits the layout.
    class Snapshot
      # Commits of the same roots before their layout is made, which takes as long as some commits without it. If it
      # turns out to be of no use, the next one is made after twice as many.
      COMMITS_BEFORE_LAYOUT = 4

      # entries:: Entry of each root, nil if the table is not divided (yet)
      # layout::  Layout of the file with these entries, nil if not known
      # before::  Snapshot of the file before the last commit, nil if another process made that
      # marshal:: whether the file's format is Marshal's
      def initialize(bytes, entries = nil, layout = nil, before: nil, marshal: true)
        @bytesize = bytes.bytesize
        @bytes = bytes if entries.nil? || bytes.bytesize <= SMALL_BYTES
        @entries = entries
        @layout = layout
        @divisible = true
        @uses = @commits = 0
        @pause = COMMITS_BEFORE_LAYOUT
        follow(before) if before
        make_layout(bytes) if marshal && entries && !layout && @commits >= @pause
      end

      # Entry of each root, nil if the table is not divided (yet).
      attr_reader :entries
      # Size of the file.
      attr_reader :bytesize

      # The table for a transaction. The block parses bytes.
      def table(read_only)
        return root_table(read_only) if @entries && (read_only || !@bytes)
        return WholeTable.new(yield(@bytes), @bytes) if !divide_now?(read_only) || !divide(yield(@bytes))

        root_table(read_only)
      end

      # Becomes the one of the file after a commit without entries. (That takes less time than a new one.)
      def renew(bytes)
        @pause *= 2 if @layout
        @commits = 0
        @entries = @layout = nil
        @bytes = bytes
        @bytesize = bytes.bytesize
      end

      protected

      attr_reader :layout, :divisible, :uses, :commits, :pause

      private

      # Takes over what is known from before a commit.
      def follow(before)
        @divisible = before.divisible
        @uses = before.uses
        @pause = before.pause
        return if @layout

        if before.layout
          @pause *= 2
        elsif @entries && before.entries && @entries.keys == before.entries.keys
          @commits = before.commits + 1
        end
      end

      def root_table(read_only) = read_only ? RootReader.new(@entries) : RootTable.new(@entries, @layout)

      def make_layout(bytes)
        @layout = Layout.of(bytes, @entries.keys)
        @commits = 0
        @pause *= 2 unless @layout
      end

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
