# frozen_string_literal: true

require_relative "../native"

module Highball
  class PStore
    # Whether Highball's extension is built for the running Ruby. Without it, PStore does the same in more time. (There
    # may be an older extension, if the source has changed since it was built.)
    EXTENSION = Extension.load_if_built && Native.respond_to?(:dump_plain)

    # Objects as Marshal writes them. The extension does it for small ones of the usual kinds, and Ruby for all others.
    module Format
      class << self
        if EXTENSION
          def dump(object) = Native.dump_plain(object) || Marshal.dump(object)
          def load(bytes) = Native.load_plain(bytes) || Marshal.load(bytes) # rubocop:disable Security/MarshalLoad
        else
          def dump(object) = Marshal.dump(object)
          def load(bytes) = Marshal.load(bytes) # rubocop:disable Security/MarshalLoad
        end
      end
    end
  end
end
