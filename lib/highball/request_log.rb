# frozen_string_literal: true

module Highball
  # Whether the application writes a line about a request into the terminal itself, so that the access log, which is
  # there too in development, need not.
  module RequestLog
    # In the env of a request that the application logs.
    LOGGED = "highball.logged"

    # Before `call` of Rails::Rack::Logger.
    module OfRails
      def call(env)
        env[LOGGED] = true
        super
      end
    end

    # Before `call` of Rack::CommonLogger, which Sinatra uses as well.
    module OfRack
      def call(env)
        env[LOGGED] = true if RequestLog.terminal?(@logger)
        super
      end
    end

    class << self
      # Has the loggers that are loaded mark what they log. To be called when the application has been loaded.
      #
      # of_rails:: whether the log of Rails is in the terminal.
      def watch(of_rails)
        ::Rack::CommonLogger.prepend(OfRack) if loaded?(:CommonLogger)
        ::Rails::Rack::Logger.prepend(OfRails) if of_rails && defined?(::Rails::Rack::Logger)
      end

      # Whether this is what Rack::CommonLogger writes into the terminal with: nil stands for `rack.errors`.
      def terminal?(logger)
        device = logger.instance_variable_get(:@logdev)
        device = device.dev if device.respond_to?(:dev)
        logger.nil? || [logger, device].intersect?([$stdout, $stderr])
      end

      private

      # Rack loads its parts when they are used first.
      def loaded?(name)
        defined?(::Rack) && ::Rack.const_defined?(name, false) && !::Rack.autoload?(name)
      end
    end
  end
end
