# frozen_string_literal: true

require "socket"
require_relative "../../test/support/highball_server"

# HAProxy in front of the machines, with the configuration that Highball prints, or a variant.
class Balancer
  PORT = 80
  # What the machines' weights and connections count for. The printed configuration is the last one.
  WAYS = {
    "round robin" => ->(printed) { without_agent(printed).sub("balance leastconn", "balance roundrobin") },
    "leastconn" => ->(printed) { without_agent(printed) },
    "round robin, agent-check" => ->(printed) { printed.sub("balance leastconn", "balance roundrobin") },
    "printed" => ->(printed) { printed }
  }.freeze
  # A line for each request: its end (ms since 1970), the server, the times to connect, to the response and to its end
  # (ms), the status, how it ended, and the number of retries.
  LOG = 'log-format "%[date(0,ms)] %s %Tc %Tr %Td %ST %ts %rc"'

  # A line of the log: `sent_at` is when it was sent to the server, in seconds since 1970.
  Sent = Struct.new(:server, :sent_at, :status, :termination, :retries)
  # What HAProxy says of a machine.
  State = Struct.new(:status, :weight, :requests, :retries, :redispatches, :failed)

  def self.without_agent(printed)
    printed.sub(/ agent-check agent-port.*/, "") || raise("the printed configuration has no agent-check")
  end

  def initialize(machines, way)
    @machines = machines
    @dir = Dir.mktmpdir("balancer")
    @config = File.join(@dir, "haproxy.cfg")
    File.write(@config, "#{own_part}#{WAYS.fetch(way).call(printed)}")
  end

  def start
    @pid = Process.spawn("haproxy", "-db", "-f", @config, in: File::NULL, out: log_path, err: error_path)
    @ended = Process.detach(@pid)
    Deadline.wait("the balancer to find all machines") do
      raise "haproxy: #{File.read(error_path)}" unless @ended.alive?

      File.socket?(stats_path) && states.values.all? { |state| state.status.start_with?("UP") }
    end
    self
  end

  def stop
    Process.kill("TERM", @pid) if @ended.alive?
    @ended.join
  end

  # By machine.
  def states
    lines = ask("show stat").lines.map { |line| line.delete_prefix("# ").chomp.split(",") }
    columns = lines.first.each_with_index.to_h
    of = ->(row, *names) { names.map { |name| row[columns.fetch(name)] } }
    rows = lines.select { |row| row[1]&.start_with?("machine") }
    rows.to_h do |row|
      status, *numbers = of[row, "status", "weight", "stot", "wretr", "wredis", "eresp"]
      [row[1], State.new(status, *numbers.map(&:to_i))]
    end
  end

  # All requests so far.
  def sent
    File.readlines(log_path, chomp: true).filter_map do |line|
      ended_at, server, connect, response, data, status, termination, retries = line.split
      next unless ended_at&.match?(/\A\d{13}\z/)

      took = [connect, response, data].sum { |time| [time.to_i, 0].max }
      Sent.new(server.delete_prefix("+"), (ended_at.to_i - took) / 1000.0, status, termination, retries)
    end
  end

  private

  # The machines keep their options. Names of machines are their numbers.
  def printed
    addresses = @machines.map(&:address)
    output, ended = HighballServer.run(
      "config", "haproxy", Machine::APP, "--machines", addresses.join(","), "--host", "cluster.test",
      "-b", "0.0.0.0:#{Machine::PORT}", "--admin", "0.0.0.0:#{Machine::ADMIN_PORT}",
      "--agent-check", "0.0.0.0:#{Machine::AGENT_PORT}"
    )
    raise "highball config haproxy: #{output}" unless ended.success?

    @machines.each { |machine| output.sub!("server #{machine.address} ", "server #{machine.name} ") }
    output
  end

  def own_part
    <<~CONF
      global
          stats socket #{stats_path}
          log stdout format raw local0
          maxconn 4000
      defaults
          log global
          #{LOG}
    CONF
  end

  def ask(command)
    UNIXSocket.open(stats_path) do |socket|
      socket.write("#{command}\n")
      socket.read
    end
  end

  def stats_path = File.join(@dir, "stats.sock")
  def log_path = File.join(@dir, "log")
  def error_path = File.join(@dir, "errors")
end
