# frozen_string_literal: true

require "socket"

module Highball
  # `rack.hijack`: hands the client's connection over to the app. The front makes a socket pair: the app gets one end,
  # and the front relays between the other end and the client.
  class Hijack
    # Sockets that the application still uses. (It may use them longer than the request takes.)
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

    # The app has failed, and will not use the connection.
    def abandon
      @socket&.close
    end

    # The socket for this request. If the client has disconnected, the other end is closed.
    def self.take_over(ring, ticket)
      number = ring.hijack(ticket)
      socket = number ? UNIXSocket.for_fd(number) : disconnected_socket
      socket.binmode
      @mutex.synchronize { @taken[socket] = true }
      socket
    end

    def self.disconnected_socket
      ours, theirs = UNIXSocket.pair
      theirs.close
      ours
    end
    private_class_method :disconnected_socket

    # Closes all of them, as the end of the process would.
    def self.close_all
      @mutex.synchronize { @taken.keys }.each do |socket|
        socket.shutdown
      rescue SystemCallError, IOError
        nil # it is closed already
      ensure
        socket.close
      end
    end
  end
end
