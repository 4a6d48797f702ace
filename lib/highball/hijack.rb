# frozen_string_literal: true

require "socket"

module Highball
  # `rack.hijack`: hands the client's connection over to the app. The app gets one end of a socket pair;
  # the front relays between the other end and the client.
  class Hijack
    # What was handed over and is still in use. (The application may use it longer than its request takes.)
    @taken = ObjectSpace::WeakMap.new
    @mutex = Mutex.new

    def initialize(ring, ticket, env)
      @ring = ring
      @ticket = ticket
      @env = env
    end

    # Full hijack (Rack SPEC, "Hijacking"): returns the socket, also as `rack.hijack_io`.
    def call
      @socket ||= Hijack.take_over(@ring, @ticket)
      @env["rack.hijack_io"] = @socket
    end

    # Sends the front one end of a new socket pair for this request, and returns the other.
    def self.take_over(ring, ticket)
      ours, theirs = UNIXSocket.pair
      ours.binmode
      ring.hijack(ticket, theirs.fileno)
      @mutex.synchronize { @taken[ours] = true }
      taken = ours
    ensure
      theirs&.close
      ours&.close unless taken
    end

    # Ends all of them, as the end of the process would.
    def self.close_all
      @mutex.synchronize { @taken.keys }.each do |socket|
        socket.shutdown
      rescue SystemCallError, IOError
        nil # it has ended already
      ensure
        socket.close
      end
    end
  end
end
