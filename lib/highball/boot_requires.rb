# frozen_string_literal: true

require_relative "load_path_index"

module Highball
  # `require` while an application boots: with an index of the load path (LoadPathIndex).
  #
  # It takes the place of RubyGems' `require`, which has two tasks more: to activate a default gem or a gem of which
  # several versions are installed, and to find gems that are not on the load path. Where one of them might be to do, it
  # calls RubyGems.
  module BootRequires
    # As RubyGems does, so that `warn` with `uplevel` does not count it, and in one frame, as there. The splat keeps
    # YJIT of Ruby 3.1 from compiling that call, as it cannot compile RubyGems' `require`: the example shop crashed when
    # a compiled method called Ruby's `require` for a file whose constants are loaded automatically.
    NAME = "<internal:#{__FILE__}>".freeze
    SOURCE = <<~'RUBY'
      alias_method :highball_original_require, :require
      private :highball_original_require

      def require(feature)
        file = ::Highball::BootRequires.file_of(feature)
        return highball_original_require(feature) unless file

        begin
          gem_original_require(*[file].to_a)
        rescue LoadError => error
          raise unless error.path == file

          highball_original_require(feature)
        end
      end
      private :require
    RUBY

    class << self
      # Calls the block, with this `require`.
      def during
        return yield unless Kernel.private_method_defined?(:gem_original_require)

        @index = LoadPathIndex.new
        install
        yield
      ensure
        @index = nil
        remove
      end

      # What Ruby is to load for this feature, if there is no doubt about it.
      def file_of(feature)
        index = @index
        return if index.nil? || !feature.is_a?(String)
        return feature if feature.start_with?("/")

        index.find(feature) unless for_rubygems?(feature)
      end

      private

      # Whether it may be of a gem that RubyGems activates when one of its files is required.
      def for_rubygems?(feature)
        Gem.find_unresolved_default_spec(feature) || of_unresolved_gem?(feature)
      end

      # Gems that others need, of which several versions are installed.
      def of_unresolved_gem?(feature)
        needed = Gem::Specification.unresolved_deps
        return false if needed.empty?

        if needed != @unresolved
          @unresolved = needed.dup
          folders = needed.values.flat_map(&:to_specs).flat_map(&:full_require_paths)
          @unresolved_gems = LoadPathIndex.new(folders.uniq)
        end
        @unresolved_gems.may_have?(feature)
      end

      def install
        return if @installed

        Kernel.module_eval(SOURCE, NAME)
        @installed = Kernel.instance_method(:require)
      end

      # If another library has put its own `require` around this one, it stays, and passes all on. The original's second
      # name stays in any case: another thread may be about to call it.
      def remove
        return unless @installed && Kernel.instance_method(:require) == @installed

        Kernel.module_eval do
          alias_method :require, :highball_original_require
          private :require
        end
        @installed = nil
      end
    end
  end
end
