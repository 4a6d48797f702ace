# frozen_string_literal: true

module Highball
  module Cable
    # What classes of the application need that the front cannot do.
    module Demands
      # Methods that the front has the part of, or a part of Action Cable's that questions replace.
      OF_CONNECTION = %i[process receive dispatch_websocket_message transmit send_async beat on_open on_message on_error
                         on_close handle_open handle_close send_welcome_message subscribe_to_internal_channel].freeze
      OF_CHANNEL = %i[transmit worker_pool_stream_handler stream_handler default_stream_handler stream_transmitter
                      stream_decoder start_periodic_timers].freeze

      module_function

      # Each returns what it is, or nil.

      def of_connection(connection)
        base = ::ActionCable::Connection::Base
        return "#{connection} is no connection of Action Cable's usual kind" unless usual?(connection)

        overridden(connection, base, OF_CONNECTION)
      end

      def of_channel(channel)
        return "#{channel} does something periodically" if channel.periodic_timers.any?

        overridden(channel, ::ActionCable::Channel::Base, OF_CHANNEL)
      end

      # Of all channels that are loaded. (Finding them takes a while: it is done once.)
      def of_channels
        ::ActionCable::Channel::Base.descendants.filter_map { |channel| of_channel(channel) }.first
      end

      # (From Rails 8.1 on, connections are made in another way.)
      def usual?(connection)
        base = ::ActionCable::Connection::Base
        connection <= base && base.instance_method(:initialize).parameters.first(2) == [%i[req server], %i[req env]]
      end

      # Gems that prepend themselves to Action Cable's classes are not meant.
      def overridden(klass, base, methods)
        own = (klass.ancestors - base.ancestors).find { |ancestor| methods_of(ancestor).intersect?(methods) } or return
        name = (methods_of(own) & methods).first
        "#{own} overrides #{name}"
      end

      def methods_of(ancestor)
        ancestor.instance_methods(false) + ancestor.private_instance_methods(false)
      end
    end
  end
end
