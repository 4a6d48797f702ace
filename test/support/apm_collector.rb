# frozen_string_literal: true

require "json"
require "socket"
require_relative "deadline"

# The services of all agents (test/support/apm_agents): keeps what they report.
class ApmCollector
  # Another one than that of the server, which Highball warns about: tests take the server's port from the log.
  ADDRESS = "127.0.0.2"

  def initialize
    @reports = []
    @connections = 0
    @lock = Mutex.new
    @server = TCPServer.new(ADDRESS, 0)
    @thread = Thread.new { accept_all }
  end

  def port = @server.addr[1]

  def close
    @server.close
    @thread.join
  end

  # All by now, each with the number of its connection.
  def reports = @lock.synchronize { @reports.dup }

  def of(agent, what) = reports.select { |report| report.values_at("agent", "what") == [agent, what] }

  # Connections over which several processes have reported: [agent, their pids].
  def shared
    users = reports.group_by { |report| report["connection"] }.values.map do |all|
      [all.first["agent"], all.map { |report| report["by"] }.uniq]
    end
    users.select { |_agent, pids| pids.length > 1 }
  end

  private

  def accept_all
    loop do
      socket = @server.accept
      number = (@connections += 1)
      Thread.new { serve(socket, number) }
    end
  rescue IOError, SystemCallError
    nil # it is closed
  end

  def serve(socket, number)
    while (line = socket.gets)
      @lock.synchronize { @reports << JSON.parse(line).merge("connection" => number) }
      socket.puts("ok")
    end
  rescue SystemCallError
    nil # its process was killed
  ensure
    socket.close
  end
end
