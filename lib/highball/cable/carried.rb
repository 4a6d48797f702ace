# frozen_string_literal: true

module Highball
  module Cable
    # What the front remembers of an object between two questions: its instance variables, as JSON. Records go by their
    # global ids.
    module Carried
      # What Action Cable itself keeps in a connection and a channel, and makes again.
      OF_CONNECTION = %i[@server @env @coder @worker_pool @logger @websocket @socket @subscriptions @message_buffer
                         @_internal_subscriptions @started_at @request @protocol @connection_identifier].freeze
      OF_CHANNEL = %i[@connection @identifier @params @defer_subscription_confirmation_counter @reject_subscription
                      @subscription_confirmation_sent @_streams @active_periodic_timers @parameter_filter].freeze

      module_function

      # Raises Unsupported if there is a value that JSON cannot have.
      def dump(object, usual)
        (object.instance_variables - usual).to_h do |name|
          [name, plain(object.instance_variable_get(name))]
        rescue Unsupported => e
          raise Unsupported, "#{object.class} keeps #{name}, #{e.message}"
        end
      end

      def restore(object, variables)
        variables.each { |name, plain| object.instance_variable_set(name, value(plain)) }
      end

      def plain(value)
        case value
        when nil, true, false, Integer then value
        when Float then value.finite? ? value : refuse(value)
        when Symbol then { "symbol" => value.name }
        when String then text(value)
        when Array then value.instance_of?(Array) ? value.map { |one| plain(one) } : refuse(value)
        when Hash then hash(value)
        else { "record" => global_id(value) }
        end
      end

      def value(plain)
        case plain
        when Array then plain.map { |one| value(one) }
        when Hash then of_kind(*plain.first)
        else plain
        end
      end

      def of_kind(kind, plain)
        case kind
        when "symbol" then plain.to_sym
        when "bytes" then plain.unpack1("m0")
        when "hash" then plain.to_h { |pair| pair.map { |one| value(one) } }
        when "fields" then plain.to_h { |pair| pair.map { |one| value(one) } }.with_indifferent_access
        else record(plain)
        end
      end
      private_class_method :of_kind

      def record(global_id)
        ::GlobalID::Locator.locate(global_id) or raise Session::Outdated, "#{global_id} is not there any more"
      rescue StandardError => e
        raise Session::Outdated, e.message
      end
      private_class_method :record

      def text(value)
        refuse(value) unless value.instance_of?(String)
        is_text = value.ascii_only? || (value.encoding == Encoding::UTF_8 && value.valid_encoding?)
        is_text ? value : { "bytes" => [value].pack("m0") }
      end
      private_class_method :text

      def hash(value)
        pairs = value.map { |pair| pair.map { |one| plain(one) } }
        return { "hash" => pairs } if value.instance_of?(Hash) && !value.default_proc
        return { "fields" => pairs } if value.instance_of?(::ActiveSupport::HashWithIndifferentAccess)

        refuse(value)
      end
      private_class_method :hash

      def global_id(value)
        refuse(value) unless value.respond_to?(:to_global_id)
        value.to_global_id.to_s
      rescue ::URI::Error
        refuse(value) # it is not saved
      end
      private_class_method :global_id

      def refuse(value)
        raise Unsupported, "an object of #{value.class}"
      end
      private_class_method :refuse
    end
  end
end
