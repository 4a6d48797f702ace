# frozen_string_literal: true

require "socket"
require "tmpdir"
require_relative "deadline"
require_relative "free_port"

# A Redis (or Valkey) on a free port of this machine, with a folder for its data. It can be killed and started again.
class RedisServer
  PROGRAMS = %w[redis-server valkey-server].freeze

  # The program, or nil if none is installed.
  def self.program
    paths = ENV.fetch("PATH").split(":").product(PROGRAMS).map { |folder, name| File.join(folder, name) }
    paths.find { |path| File.executable?(path) }
  end

  attr_reader :address, :port

  # durable:: whether it has the same data again after it was killed
  # address:: where it listens
  def initialize(durable: true, address: "127.0.0.1")
    @folder = Dir.mktmpdir("highball-redis")
    @port = FreePort.free_port
    @durable = durable
    @address = address
    start
  end

  def url = "redis://#{@address}:#{@port}/0"

  def start
    options = { port: @port, bind: @address, "protected-mode": "no", dir: @folder, save: "",
                appendonly: @durable ? "yes" : "no", appendfsync: "always", daemonize: "no" }
    arguments = options.flat_map { |name, value| ["--#{name}", value.to_s] }
    @pid = Process.spawn(self.class.program, *arguments, %i[out err] => [log, "a"])
    Deadline.wait("Redis to answer:\n#{File.read(log)}") { answers? }
  end

  # As a crash does.
  def kill
    return unless @pid

    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @pid = nil
  end

  def finish
    kill
    FileUtils.rm_rf(@folder)
  end

  private

  def log = File.join(@folder, "log")

  # (Before it has read its data, it answers with an error.)
  def answers?
    TCPSocket.open(@address, @port) do |socket|
      socket.write("PING\r\n")
      socket.gets == "+PONG\r\n"
    end
  rescue SystemCallError
    false
  end
end
