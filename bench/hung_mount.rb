# frozen_string_literal: true

# How an application's response times change while another application on the same server sends files from a file system
# that does not answer:
#
#     ruby bench/hung_mount.rb [ROUNDS]
#
# Each round measures without and with such requests, one after the other. Needs root, and /dev/fuse.

require_relative "../test/support/fuse_folder"
require_relative "../test/support/highball_server"
require "tmpdir"

# Two applications, "good" and "bad", of which the second has its files on that file system.
class HungMount
  REQUESTS = 4000
  HANGING = 12
  WITHIN = 120

  def initialize(rounds)
    @rounds = rounds
  end

  def run
    Dir.mktmpdir do |folder|
      File.chmod(0o755, folder)
      write(folder)
      FuseFolder.mounted("#{folder}/bad/public/disk", files) { |disk| measure(start(folder), disk) }
    end
  ensure
    @server&.stop
  end

  private

  def files = HANGING.times.to_h { |number| ["#{number}.bin", "x" * (1 << 20)] }

  def write(folder)
    %w[good bad/public/disk].each { |path| FileUtils.mkdir_p("#{folder}/#{path}") }
    %w[good bad].each { |name| File.write("#{folder}/#{name}/config.ru", "run ->(_) { [200, {}, ['#{name}']] }\n") }
    entries = %w[good bad].map { |name| "[[app]]\npath = '#{name}'\nhosts = ['#{name}']\n" }
    File.write("#{folder}/highball.toml", entries.join)
  end

  def start(folder)
    command = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-w", "1", "-e", "production", folder]
    @server = HighballServer.new(folder, command: command, env: {})
    Deadline.wait("the server") { @server.log.include?("serving on") }
    @server
  end

  def measure(server, disk)
    times(server)
    ratios = Array.new(@rounds) do
      quiet = p99(times(server))
      hung = while_hung(server, disk) { p99(times(server)) }
      puts "p99 without #{quiet.round} µs, with #{hung.round} µs: #{(hung / quiet).round(2)}"
      hung / quiet
    end
    puts "median of the ratios: #{ratios.sort[ratios.length / 2].round(2)}"
  end

  # Seconds for each of many requests to the good application.
  def times(server)
    server.connect do |connection|
      Array.new(REQUESTS) do
        began = Deadline.now
        connection.get("/", { "Host" => "good" })
        Deadline.now - began
      end
    end
  end

  def while_hung(server, disk)
    disk.ignore(:lookup, :open, :read)
    clients = Array.new(HANGING) do |number|
      Thread.new { server.get("/disk/#{number}.bin", { "Host" => "bad" }, within: WITHIN) }
    end
    Deadline.wait("a question to the disk") { disk.unanswered.positive? }
    yield
  ensure
    disk.answer
    clients&.each(&:join)
  end

  # In microseconds.
  def p99(seconds) = seconds.sort[seconds.length * 99 / 100] * 1e6
end

HungMount.new(Integer(ARGV.fetch(0, 5))).run if $PROGRAM_NAME == __FILE__
