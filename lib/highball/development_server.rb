# frozen_string_literal: true

require_relative "../highball"
require_relative "host_system"
require_relative "development_server/arguments"
require_relative "development_server/options"

module Highball
  # Serves development where Highball itself does not run: by Puma, on which the gems for such systems depend.
  #
  # In reading order: Arguments (the command line), Options (what was asked for, and where), this module (Puma serves an
  # application), Command (`highball` on such systems), Doctor (`highball doctor`).
  module DevelopmentServer
    # What a process says when it begins to serve.
    NOTE = "development server: Puma; Highball itself runs on Linux"
    # The number that hooks get: there is one process.
    WORKER = 1
    # Where an application may set its hooks.
    SETTINGS = "config/highball.rb"
    PAGE = "docs/develop-on-a-mac.md"

    # Puma is not among the gems.
    class NoPuma < StandardError
      def initialize
        super("Puma, which serves development on #{HostSystem.name}, is not among the gems. Run: bundle add puma")
      end
    end

    class << self
      # Serves the application until it is stopped. Yields when it can be stopped by #stop.
      def run(app, options)
        abort("highball: #{refusal}") if options.production?

        puma = handler
        announce(options)
        begin_hooks
        puma.run(app, **options.for_puma) do |launcher|
          @launcher = launcher
          yield if block_given?
        end
        Highball.hooks.run(:before_worker_shutdown, WORKER)
      ensure
        @launcher = nil
      end

      def stop = @launcher&.stop

      # Why production is not served here, and what to do.
      def refusal
        "production needs Linux, and this is #{HostSystem.name}: deploy there, or run it here in a container " \
          "(#{PAGE}). For development, leave the environment out, or write: highball -e development"
      end

      # Says once which server this is, and which options have no effect.
      def announce(options = nil)
        return if @announced

        @announced = true
        [NOTE, options&.left_out].compact.each { |line| $stderr.write("highball: #{line}\n") }
      end

      # Puma's handler, for Rackup or for Rack 2.
      def handler
        require "rack/handler/puma"
        defined?(::Rackup::Handler::Puma) ? ::Rackup::Handler::Puma : ::Rack::Handler::Puma
      rescue LoadError => e
        raise e unless e.path&.start_with?("rack/handler/puma", "puma")

        raise NoPuma
      end

      # Serves an application for the tests of this process, by Capybara's own registration.
      def run_for_tests(app, port, host, threads)
        announce
        ::Capybara.servers.fetch(:puma).call(app, port, host, Threads: "0:#{threads}", Silent: true)
      end

      private

      # This process is what a mold and its only worker are on Linux.
      def begin_hooks
        settings = File.expand_path(SETTINGS)
        require settings if File.exist?(settings)
        Highball.hooks.run(:before_fork)
        Highball.hooks.run(:after_fork, WORKER)
      end
    end
  end
end
