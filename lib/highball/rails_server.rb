# frozen_string_literal: true

module Highball
  # `rails server` loads the application and gives it to the server. Highball loads it itself, in its mold: so this
  # process, which becomes `highball serve`, need not load it first.
  module RailsServer
    def self.install
      ::Rails::Server.prepend(self) unless ::Rails::Server.include?(self)
    end

    private

    # Another config.ru than the usual one is served as an object.
    def wrapped_app
      super unless becomes_highball?
    end

    # Done by the mold (Highball::RailsLog).
    def log_to_stdout
      super unless becomes_highball?
    end

    def becomes_highball?
      server.is_a?(Handler) && Handler.folder_of(options)
    end
  end
end
