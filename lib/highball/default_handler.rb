# frozen_string_literal: true

require_relative "host_system"

module Highball
  # Makes Highball the server that `rails server` and `rackup` start where the bundle has no other one. An environment
  # variable (RACKUP_HANDLER, RACK_HANDLER) or an option (`-u`, `-s`) that names a server goes before.
  module DefaultHandler
    # The servers that Rack starts by default. A server in the bundle stays the default. WEBrick does not count: gems
    # depend on it for other things.
    OTHERS = %w[puma thin falcon].freeze
    NAMING = %w[RACKUP_HANDLER RACK_HANDLER].freeze

    # Whether no other server is in the bundle. (A server that lies elsewhere on the load path was not asked for.)
    def self.wanted? = OTHERS.none? { |name| Gem.loaded_specs.key?(name) && !ours?(name) }

    # Elsewhere than on Linux, Highball depends on Puma. Then Puma counts if the Gemfile names it.
    def self.ours?(name)
      return false if name != "puma" || HostSystem.linux?

      !defined?(::Bundler.definition) || ::Bundler.definition.dependencies.none? { |one| one.name == name }
    end
    private_class_method :ours?

    # Does nothing in a process that has not loaded Rack's means to start servers: the console, Rake, Highball's own.
    def self.install
      handlers = registry
      handlers.singleton_class.prepend(self) if handlers && !handlers.singleton_class.include?(self)
    end

    # Where Rack finds servers; nil if this process starts none.
    def self.registry
      return ::Rackup::Handler if defined?(::Rackup::Handler)

      ::Rack::Handler if defined?(::Rack::Handler) && defined?(::Rack::Server) && !::Rack.autoload?(:Server)
    end
    private_class_method :registry

    # Called before the method of Rack::Handler or Rackup::Handler.
    def default
      named = NAMING.any? { |name| ENV.key?(name) }
      named || !DefaultHandler.wanted? ? super : get("highball")
    end
  end
end
