# frozen_string_literal: true

module Highball
  class PStore
    # The files that the stores of this process have open. Some stay open between transactions.
    #
    # A forked process inherits open files with their locks: if the parent were killed in a transaction, its lock would
    # remain as long as any child lives. So a child closes them first.
    module OpenFiles
      # Files that stay open between transactions.
      MOST = 64

      @files = ObjectSpace::WeakMap.new
      @process = Object.new

      class << self
        # An object that each process has another one of. (Asking the system for the process's number takes longer.)
        attr_reader :process
      end

      # Records an open file.
      def self.add(file)
        @files[file] = true
      end

      # Whether there are few enough that a file may stay open.
      def self.few?
        @files.size <= MOST || (forget_closed && @files.size <= MOST)
      end

      # (The map drops garbage automatically.)
      def self.forget_closed
        before = @files
        @files = ObjectSpace::WeakMap.new
        before.each_key { |file| add(file) unless file.closed? }
        true
      end
      private_class_method :forget_closed

      # In a forked process.
      def self.close_all
        files = @files
        @files = ObjectSpace::WeakMap.new
        @process = Object.new
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
