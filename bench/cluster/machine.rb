# frozen_string_literal: true

require_relative "../../test/support/highball_server"

# A machine of the cluster: Highball with the options that the printed configuration of HAProxy asks for.
class Machine
  APP = File.expand_path("../apps/machine", __dir__)
  PORT = 3000
  ADMIN_PORT = 9394
  AGENT_PORT = 9395
  DRAIN_GRACE = 5 # seconds

  attr_reader :name, :address, :server

  # `slowness`: how many times as long a request takes as on the others.
  def initialize(number, network, slowness: 1, workers: 2, threads: 4)
    @name = "machine#{number}"
    @address = "10.77.0.#{10 + number}"
    @network = network
    @slowness = slowness
    @size = [workers, threads].map(&:to_s)
    network.add(@name, @address)
  end

  def start
    workers, threads = @size
    command = [*@network.command_in(@name), HighballServer::BINARY, "serve", "-b", "#{@address}:#{PORT}",
               "--admin", "#{@address}:#{ADMIN_PORT}", "--agent-check", "#{@address}:#{AGENT_PORT}",
               "--drain-grace", "#{DRAIN_GRACE}s", "-e", "production", "-w", workers, "-t", threads, APP]
    @server = HighballServer.new(APP, command: command, env: environment)
    self
  end

  def wait_until_ready
    Deadline.wait("#{@name} to be ready", within: 60) do
      raise "#{@name} has ended:\n#{@server.log}" unless @server.running?

      ready?
    end
  end

  # kill -9 of all processes at once.
  def kill
    @server.pids.each { |pid| HighballServer.kill(pid) }
    @server.wait
  end

  # `highball restart` and `highball upgrade`: they return when it is done.
  def restart = run("restart")
  def upgrade = run("upgrade")

  # Stops it as a deploy does, and yields until it has ended.
  def stop
    @server.signal("TERM")
    Deadline.wait("#{@name} to end", within: 60, every: 0.02) do
      yield if block_given?
      !@server.running?
    end
  end

  # It accepts no more connections for requests.
  def stopped_accepting? = @server.log.match?(/INFO {2}stopping$/)

  # Its network goes, too.
  def finish
    @server&.finish
    @network.remove(@name)
  end

  private

  def environment
    FileUtils.mkdir_p(control)
    { "MACHINE" => @name, "SLOWNESS" => @slowness.to_s, "HIGHBALL_CONTROL" => control }
  end

  def control = File.join(HighballServer::CONTROL, @name)

  def run(command)
    output, ended = HighballServer.run(command, "--port", PORT.to_s, env: { "HIGHBALL_CONTROL" => control }, within: 90)
    raise "highball #{command}: #{output}" unless ended.success?
  end

  def ready?
    Socket.tcp(@address, ADMIN_PORT, connect_timeout: 1) do |socket|
      socket.write("GET /readyz HTTP/1.0\r\n\r\n")
      socket.read.include?(" 200 ")
    end
  rescue SystemCallError
    false
  end
end
