# frozen_string_literal: true

module Highball
  # Drops the threads and descriptors of Action Cable in a process that has served WebSockets, before it forks: forks
  # have no such threads, and must not share the descriptors. Action Cable creates new ones when it needs them.
  module CableServer
    # Action Cable's event loop, and the timer that runs there. (`restart` drops the rest.)
    LEFT = %i[@event_loop @heartbeat_timer].freeze

    # Call it after the process has stopped serving.
    def self.forget
      return unless defined?(::ActionCable) && (server = ::ActionCable.instance_variable_get(:@server))

      server.instance_variable_get(:@heartbeat_timer)&.shutdown
      server.restart
      server.instance_variable_get(:@event_loop)&.stop
      LEFT.each { |name| server.instance_variable_set(name, nil) }
    end
  end
end
