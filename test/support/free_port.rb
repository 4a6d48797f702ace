# frozen_string_literal: true

require "socket"

# Ports of 127.0.0.1 for programs that need a fixed one. They are not in the range that the system gives to clients
# and to listeners on port 0 (ip(7), ip_local_port_range): one of these may be taken again before the program listens.
module FreePort
  PORTS = (10_000...32_768)

  module_function

  def free_port
    port = rand(PORTS)
    TCPServer.open("127.0.0.1", port) { port }
  rescue Errno::EADDRINUSE
    retry
  end

  # Whether a program listens on it.
  def taken?(port)
    Socket.tcp("127.0.0.1", port) { true }
  rescue Errno::ECONNREFUSED
    false
  end
end
