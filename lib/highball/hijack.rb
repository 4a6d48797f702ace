# frozen_string_literal: true

require "socket"

module Highball
  # `rack.hijack`: hands the client's connection over to the app. The app gets one end of a socket pair;
  # the front relays between the other end and the client.
  class Hijack
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
      taken = ours
    ensure
      theirs&.close
      ours&.close unless taken
    end
  end
end
