# frozen_string_literal: true

require_relative "plain"

module Highball
  class PStore
    # A root's value as a RootTable keeps it between transactions. Applications get copies, because they may change
    # what they get. `original` is for writing the file, and is never given away.
    module Entry
      # The entry of an object; the known one if the object is the same as its. Raises a TypeError if Marshal cannot
      # write the object.
      def self.of(object, known = nil)
        case object
        when nil, true, false, Integer, Symbol, Float
          known.is_a?(Value) && known.original.equal?(object) ? known : Value.new(object)
        else
          return text_of(object, known) if object.instance_of?(String) && object.instance_variables.empty?

          bytes = Marshal.dump(object)
          known.is_a?(Dumped) && known.bytes == bytes ? known : Dumped.new(bytes)
        end
      end

      def self.text_of(string, known)
        same = known.is_a?(Text) && known.original == string && known.original.encoding == string.encoding
        same ? known : Text.new(string.dup.freeze)
      end
      private_class_method :text_of

      # A value that cannot be changed: it is its own copy.
      Value = Struct.new(:original) do
        def copy = original
        def immutable? = true
      end

      # A string: its copies share the bytes until they are changed.
      Text = Struct.new(:original) do
        def copy = original.dup
        def immutable? = false
      end

      # Any other object, as Marshal writes it.
      class Dumped
        # Larger objects are always copied by Marshal, because Plain keeps one in memory.
        MOST_PLAIN_BYTES = 16 * 1024
        private_constant :MOST_PLAIN_BYTES

        attr_reader :bytes

        # original:: an equal object that the application does not have; made when needed if nil
        def initialize(bytes, original = nil)
          @bytes = bytes
          @copied = false
          @plain = nil
          @original = original
        end

        # From the second time on, a small and plain object is copied without Marshal, which takes less time.
        def copy
          return @plain.copy if @plain

          @plain = plain if @copied && @plain.nil?
          @copied = true
          load
        end

        def original = @original ||= load
        def immutable? = false

        private

        def load = Marshal.load(@bytes) # rubocop:disable Security/MarshalLoad
        def plain = (@bytes.bytesize <= MOST_PLAIN_BYTES && Plain.of(load)) || false
      end
    end
  end
end
