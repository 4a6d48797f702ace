# frozen_string_literal: true

module Highball
  # The log of a Rails application in the terminal, in development: what `rails server` prints, whatever has started the
  # server.
  module RailsLog
    # `on` or `off` where `rails server` was given an option for it.
    VARIABLE = "HIGHBALL_SHOW_LOG"

    # From now on, what the application logs goes to standard output, too, if it does not go to the terminal already.
    # Returns whether it does.
    def self.show
      logger = ::Rails.logger or return false
      return true if ::ActiveSupport::Logger.logger_outputs_to?(logger, $stdout, $stderr)

      broadcast(logger) if wanted?
      wanted?
    end

    def self.wanted?
      { "on" => true, "off" => false }.fetch(ENV.fetch(VARIABLE, nil)) { ::Rails.env.development? }
    end

    # As `rails server` does it.
    def self.broadcast(logger)
      console = ::ActiveSupport::Logger.new($stdout, level: logger.level)
      console.formatter = logger.formatter
      if logger.respond_to?(:broadcast_to) # Rails 7.1 and later
        logger.broadcast_to(console)
      else
        logger.extend(::ActiveSupport::Logger.broadcast(console))
      end
    end
    private_class_method :wanted?, :broadcast
  end
end
