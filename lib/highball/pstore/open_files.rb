# frozen_string_literal: true

module Highball
  class PStore
    # The files that stores of this process keep open between transactions.
    #
    # A forked process inherits open files with their locks: if the parent were killed in a transaction, its lock would
    # remain as long as any child lives. So a child closes them first.
    module OpenFiles
      MOST = 64

      @files = ObjectSpace::WeakMap.new

      # Records an open file.
      def self.add(file)
        @files[file] = true
      end

      # Whether this file may stay open. (The map forgets files that are garbage; closed ones remain in it until then.)
      def self.keep?(file)
        return true if @files.key?(file)
        return false if @files.size >= MOST

        add(file)
        true
      end

      # In a forked process.
      def self.close_all
        files = @files
        @files = ObjectSpace::WeakMap.new
        files.each_key { |file| file.close unless file.closed? }
      end

      # Kernel#fork and Process.fork call this.
      module Fork
        def _fork
          pid = super
          OpenFiles.close_all if pid.zero?
          pid
        end
      end
      Process.singleton_class.prepend(Fork)
    end
  end
end
