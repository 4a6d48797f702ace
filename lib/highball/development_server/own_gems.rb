# frozen_string_literal: true

module Highball
  module DevelopmentServer
    # The gems that Highball needs here, for a folder whose Gemfile does not name Highball: `gem install highball` has
    # installed them, and Bundler hides them.
    module OwnGems
      NAMES = %w[puma tomlrb].freeze

      # Returns what makes them available. To be called before Bundler chooses the gems.
      def self.note
        specs = NAMES.flat_map { |name| with_dependencies(name) }
        -> { add(specs) }
      end

      def self.with_dependencies(name)
        spec = Gem::Specification.find_by_name(name)
        [spec, *spec.runtime_dependencies.flat_map { |dependency| with_dependencies(dependency.name) }]
      rescue Gem::MissingSpecError
        []
      end

      # Where the bundle has a gem, that one counts.
      def self.add(specs)
        folders = specs.reject { |spec| Gem.loaded_specs.key?(spec.name) }.flat_map(&:full_require_paths)
        $LOAD_PATH.concat(folders - $LOAD_PATH)
      end
      private_class_method :with_dependencies, :add
    end
  end
end
