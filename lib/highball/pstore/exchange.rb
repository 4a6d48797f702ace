# frozen_string_literal: true

module Highball
  class PStore
    # renameat2(2) with RENAME_EXCHANGE: two files of a folder change their names in one step. Ruby has no method for
    # it. Linux has it since 3.15, and not every file system.
    module Exchange
      AT_FDCWD = -100
      RENAME_EXCHANGE = 2
      private_constant :AT_FDCWD, :RENAME_EXCHANGE

      # Returns whether it was done.
      def self.call(path, other)
        @function = find if @function.nil?
        return false unless @function

        @function.call(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE).zero?
      end

      # (Ruby's Fiddle calls functions of the C library. From Ruby 3.5 on, it is a gem that may be missing.)
      def self.find
        require "fiddle"
        int = Fiddle::TYPE_INT
        path = Fiddle::TYPE_VOIDP
        Fiddle::Function.new(Fiddle.dlopen(nil)["renameat2"], [int, path, int, path, int], int)
      rescue LoadError, Fiddle::DLError
        false
      end
      private_class_method :find
    end
  end
end
