# frozen_string_literal: true

module Highball
  # The adapter of Action Cable, by which broadcasts go to the clients of other processes.
  module CableAdapter
    # Adapters that reach the clients of one process.
    OF_ONE_PROCESS = %w[async inline].freeze
    OWN = "highball"

    class << self
      # The name of the application's adapter, if Highball's is in its place.
      attr_reader :replaced

      # Has Highball's adapter take the place of an adapter that reaches the clients of one worker alone.
      def share(root)
        return unless (server = self.server)
        return unless OF_ONE_PROCESS.include?(name = name_of(server)) && channels?(root)

        server.config.cable = server.config.cable.to_h.with_indifferent_access.merge(adapter: OWN)
        server.restart if server.instance_variable_get(:@pubsub) # made while the application booted
        @replaced = name
      end

      # Action Cable's server, if the application has asked for it. (Asking here would load Action Cable.)
      def server = defined?(::ActionCable) && ::ActionCable.instance_variable_get(:@server)

      # (Without Rails, these parts of Active Support may not be loaded yet. Action Cable needs the second one itself.)
      def name_of(server)
        require "active_support/core_ext/hash/indifferent_access"
        require "active_support/core_ext/string/inflections"
        server.config.cable.to_h.with_indifferent_access["adapter"].to_s
      end

      # Whether the application has channels. (Those of a Rack application may be anywhere.)
      def channels?(root)
        return true if !defined?(::Rails.application) || defined?(::Turbo::StreamsChannel)

        Dir.glob("app/channels/**/*_channel.rb", base: root).any?
      end
    end
  end
end
