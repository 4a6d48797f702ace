# frozen_string_literal: true

module Highball
  # A process that has served WebSockets holds threads and descriptors of Action Cable. Its forks cannot use them: the
  # threads end with the fork, and the forks would share the descriptors. Where they are missing, Action Cable makes
  # others.
  module CableServer
    # Its event loop, and the timer that runs there. (`restart` drops the others.)
    LEFT = %i[@event_loop @heartbeat_timer].freeze

    # Drops them all. The process has to have stopped serving.
    def self.forget
      return unless defined?(::ActionCable) && (server = ::ActionCable.instance_variable_get(:@server))

      server.instance_variable_get(:@heartbeat_timer)&.shutdown
      server.restart
      server.instance_variable_get(:@event_loop)&.stop
      LEFT.each { |name| server.instance_variable_set(name, nil) }
    end
  end
end
