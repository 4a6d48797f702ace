# frozen_string_literal: true

require "socket"

module Highball
  # `rack.hijack`: hands the client's connection over to the app. The front makes a socket pair: the app gets one end,
  # and the front relays between the other end and the client.
  #
  # The ring puts one into every env (ext/highball/src/hijack.rs).
  class Hijack
    # Sockets that the application still uses, and the tickets of their requests. (It may use them longer than the
    # request takes.)
    @taken = ObjectSpace::WeakMap.new
    @mutex = Mutex.new

    # The ring of this process, if it is a worker.
    singleton_class.attr_accessor :ring

    # Full hijack (Rack SPEC, "Hijacking"): returns the socket, also as `rack.hijack_io`.
    def call
      @socket ||= take_over
      env["rack.hijack_io"] = @socket
    end

    # The socket for this request. If the client has disconnected, the other end is closed.
    def self.take_over(ring, ticket)
      number = ring.hijack(ticket)
      socket = number ? UNIXSocket.for_fd(number) : disconnected_socket
      socket.binmode
      @mutex.synchronize { @taken[socket] = ticket }
      socket
    end

    # The app has failed, and will not use the connection of this request.
    def self.abandon(ticket)
      @mutex.synchronize { @taken.select { |_, of| of == ticket } }.each { |socket, _| socket.close }
    end

    def self.disconnected_socket
      ours, theirs = UNIXSocket.pair
      theirs.close
      ours
    end
    private_class_method :disconnected_socket

    # The process serves no longer. Closes all of them, as its end would.
    def self.end_all
      self.ring = nil
      close_all
    end

    def self.close_all
      @mutex.synchronize { @taken.keys }.each do |socket|
        socket.shutdown
      rescue SystemCallError, IOError
        nil # it is closed already
      ensure
        socket.close
      end
    end
    private_class_method :close_all

    private

    def take_over
      ring = Hijack.ring or raise IOError, "this process serves no requests any more"
      Hijack.take_over(ring, ring.ticket_of(env))
    end
  end
end
