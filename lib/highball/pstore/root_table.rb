# frozen_string_literal: true

require_relative "entry"

module Highball
  class PStore
    # The table of a transaction whose file is known: it copies only the roots that the transaction uses.
    class RootTable
      # The entries of a table, or nil if it cannot be divided into roots:
      # - Roots share an object. Copied one by one, they would no longer share it.
      # - The hash or its names are unusual, or Marshal cannot write a value (that a file in another format has).
      def self.divide(hash)
        return unless hash.instance_of?(Hash) && !hash.default && !hash.compare_by_identity?
        return unless hash.each_key.all? { |name| usual?(name) }

        entries = hash.transform_values { |value| Entry.of(value) }
        entries unless sharing?(hash, entries)
      rescue TypeError
        nil
      end

      def self.usual?(name)
        case name
        when Symbol, Integer then true
        else name.instance_of?(String)
        end
      end

      # Whether two of these objects have a part in common: Marshal writes the second time only a reference to it,
      # which it does not if each root has been copied.
      def self.sharing?(objects, entries)
        return false if objects.size < 2

        objects = objects.reject { |name, _| entries[name].immutable? }
        return false if objects.size < 2

        Marshal.dump(objects.values) != Marshal.dump(objects.keys.map { |name| entries[name].copy })
      end

      # entries:: never changed here, because the next transaction uses them if this one is aborted
      # layout::  Layout of the file, nil if not known
      def initialize(entries, layout = nil)
        @before = @entries = entries
        @layout = layout
        @used = {}
      end

      def [](name)
        value = @used[name]
        return value if value || @used.key?(name)

        entry = @entries[name]
        @used[name] = entry.copy if entry
      end

      def key?(name) = @entries.key?(name)
      def keys = @entries.keys

      def []=(name, value)
        add(name) unless @entries.key?(name)
        @used[name] = value
      end

      def delete(name)
        return unless key?(name)

        value = self[name]
        own_entries.delete(name)
        @used.delete(name)
        value
      end

      # The bytes of the new file, by the block or the layout, its entries if it can be divided, and its layout if the
      # names are the same. Nil if nothing has changed.
      def changes
        changed = changed_entries or return [yield(whole), nil]
        return if changed.empty? && same_names?

        entries = @entries.merge(changed)
        return [yield(whole), nil] unless divisible?(entries)

        layout = @layout&.with(@used.slice(*changed.keys)) if same_names?
        [layout ? layout.bytes : yield(whole), entries, layout]
      end

      private

      # Whether the file has the same names in the same order as before.
      def same_names? = @entries.equal?(@before)

      def add(name)
        own_entries[name] = nil
      end

      # The entries of this transaction.
      def own_entries
        @entries = @entries.dup if same_names?
        @entries
      end

      # The table as it is now. (A new entry has no original yet, and its object is in use.)
      def whole = @entries.to_h { |name, entry| [name, @used.fetch(name) { entry.original }] }

      # The entries of the objects that the transaction has changed. Nil if an object cannot be copied, which a file in
      # another format than Marshal's may allow.
      def changed_entries
        @used.each_with_object({}) do |(name, object), changed|
          entry = Entry.of(object, @entries[name])
          changed[name] = entry unless entry.equal?(@entries[name])
        end
      rescue TypeError
        nil
      end

      def divisible?(entries)
        (same_names? || entries.each_key.all? { |name| RootTable.usual?(name) }) && !RootTable.sharing?(@used, entries)
      end
    end
  end
end
