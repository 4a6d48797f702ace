# frozen_string_literal: true

require_relative "native"

module Highball
  # Gives memory back while a worker has no requests: what they have dropped since the last garbage collection, which
  # Ruby would keep until it needs room. A minor collection suffices for that, and does not write to the memory of old
  # objects, which the worker shares with others.
  class IdleMemory
    # A worker is idle if it has served nothing from one look to the next.
    LOOK_EVERY = 5.0 # seconds

    def initialize(server)
      @server = server
      @seen = @tidied = server.tickets
    end

    # Called every LOOK_EVERY. Returns whether it has given memory back.
    def look
      tickets = @server.tickets
      idle = tickets == @seen && !@server.busy?
      @seen = tickets
      return false if !idle || tickets == @tidied || gc_disabled?

      @tidied = tickets
      GC.start(full_mark: false, immediate_sweep: true)
      Native.trim_malloc
      true
    end

    private

    # The application chooses itself when garbage is collected.
    def gc_disabled?
      GC.disable.tap { |disabled| GC.enable unless disabled }
    end
  end
end
