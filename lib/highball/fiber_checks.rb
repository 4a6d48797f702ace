# frozen_string_literal: true

module Highball
  # What of a Rails application is not safe, or waits, with requests on fibers.
  module FiberChecks
    def self.problems
      return [] unless defined?(::Rails) && ::Rails.respond_to?(:gem_version) && ::Rails.application

      [isolation, leases, reloading].compact
    end

    def self.isolation
      unless defined?(::ActiveSupport::IsolatedExecutionState)
        return "Rails before 7.0 keeps its state, such as the database connection, by thread, and all fibers of a " \
               "worker share one: upgrade Rails, or leave its paths out of `fibers`"
      end
      return if ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber

      "Rails keeps its state by thread, and all fibers of a worker share one: set " \
        "config.active_support.isolation_level = :fiber in config/application.rb"
    end

    def self.leases
      return unless defined?(::ActiveRecord::Base) && !before?("7.0") && before?("7.2")

      "Active Record before 7.2 gives each request a database connection until its end: with more fibers than " \
        "`pool` in config/database.yml, they wait for one"
    end

    def self.reloading
      return unless before?("8.2") && !::Rails.application.config.cache_classes

      "Rails before 8.2 cannot reload code while requests run on fibers: restart it after changes"
    end

    def self.before?(version) = ::Rails.gem_version < Gem::Version.new(version)

    private_class_method :isolation, :leases, :reloading, :before?
  end
end
