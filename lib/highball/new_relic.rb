# frozen_string_literal: true

module Highball
  # New Relic's agent connects while the application is loaded, unless it knows that the server forks: workers would
  # share its connection. It does not know Highball, and has a variable that names the server
  # (docs/decisions/0052-new-relic-learns-that-the-server-forks.md).
  module NewRelic
    VARIABLE = "NEW_RELIC_DISPATCHER"
    # Of the servers that it knows to fork. It does nothing else for this one.
    SERVER = "puma"
    # The agent reads any case, and both spellings.
    NAMED = /\Anew_?relic_dispatcher\z/i

    # Calls the block, which loads the application with its gems.
    def self.expect_forks
      return yield if !Gem.loaded_specs.key?("newrelic_rpm") || ENV.keys.grep(NAMED).any?

      begin
        ENV[VARIABLE] = SERVER
        yield
      ensure
        ENV.delete(VARIABLE) # programs that the application starts are other dispatchers
      end
    end
  end
end
