# frozen_string_literal: true

require_relative "message"

module Highball
  # This process's end of the control socket to the supervisor: JSON messages in packets, with open descriptors beside
  # them. See PROTOCOL.md of the supervisor.
  class ControlSocket
    # The socket whose number the supervisor left in the environment. Child processes do not inherit it.
    def self.from_environment(env = ENV)
      number = env.delete("HIGHBALL_CONTROL_FD") or
        raise ArgumentError, "HIGHBALL_CONTROL_FD is not set: highball starts this program; do not run it by hand"
      new(IO.for_fd(Integer(number), "r+b"))
    end

    def initialize(io)
      io.sync = true
      io.close_on_exec = true
      @io = io
    end

    def to_io = @io
    def fileno = @io.fileno
    def close = @io.close

    # Sends one message; `descriptors` are IO objects, which stay open here.
    def say(type, descriptors: [], **fields)
      text = Message.encode({ type: type, **fields })
      return @io.syswrite(text) if descriptors.empty?

      rights = ::Socket::AncillaryData.unix_rights(*descriptors)
      socket.sendmsg(text, 0, nil, rights)
    end

    # Waits for the next message: its fields, and the IO objects that came with it. nil once the supervisor has closed
    # the socket.
    def receive
      text, _from, _flags, *controls =
        socket.recvmsg(Message::LIMIT, 0, nil, scm_rights: true)
      return if text.nil? || text.empty?

      [Message.decode(text), controls.flat_map { |control| control.unix_rights || [] }]
    rescue Errno::ECONNRESET
      nil
    end

    private

    # Requires `socket` only here, because it must not be loaded before Bundler.
    def socket
      return @io if defined?(::BasicSocket) && @io.is_a?(::BasicSocket)

      require "socket"
      @io.autoclose = false
      @io = ::Socket.for_fd(@io.fileno)
    end
  end
end
