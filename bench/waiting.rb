# frozen_string_literal: true

# How long requests take beside many that wait for another service: one worker, 200 requests that wait, and a request
# for a small page every 20 ms. The application opens a connection to a service on this machine, which answers after the
# measurement.
#
#     ruby bench/waiting.rb [SERVER…]
#
# A server is `highball`, `puma` or `passenger` (Debian's packages), or the path of another puma, with options after it:
#
#     ruby bench/waiting.rb "highball -t 3..32" "highball -t 3" puma "puma -t 0:16" passenger

require "fileutils"
require "socket"
require "tmpdir"
require_relative "../test/support/free_port"
require_relative "../test/support/process_facts"
require_relative "../test/support/slow_service"

# One server, measured.
class WaitingBench
  include FreePort

  APP = <<~RUBY
    require "socket"
    run lambda { |env|
      TCPSocket.open("127.0.0.1", ENV.fetch("SERVICE").to_i, &:read) if env["PATH_INFO"] == "/wait"
      [200, { "content-type" => "text/plain" }, ["hello"]]
    }
  RUBY
  WAITING = 200
  SETTLES = 3 # seconds
  LASTS = 10 # seconds
  EVERY = 0.02 # seconds
  MOST = 15 # seconds that a request may take
  ROOT = File.expand_path("..", __dir__)

  def initialize(command)
    @program, *@options = command.split
  end

  def run
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), APP)
      @service = SlowService.new
      @port = free_port
      @pid = Process.spawn({ "SERVICE" => @service.port.to_s, "RACK_ENV" => "production" }, *arguments,
                           chdir: folder, %i[out err] => File.join(folder, "log"))
      wait_for_port
      measure
    ensure
      @service.close
      Process.kill("TERM", @pid)
      Process.wait(@pid)
    end
  end

  private

  def arguments
    case @program
    when "highball"
      binary = ENV.fetch("HIGHBALL_BIN", File.join(ROOT, "bin/highball"))
      [binary, "serve", "-w", "1", *@options, "-b", "127.0.0.1", "-p", @port.to_s, "."]
    when "passenger"
      ["passenger", "start", "--engine", "builtin", "--address", "127.0.0.1", "--port", @port.to_s,
       "--environment", "production", "--max-pool-size", "1", "--no-install-runtime", "--disable-security-update-check",
       "--log-file", "passenger.log", "--pid-file", "passenger.pid", *@options]
    else [@program, *@options, "-b", "tcp://127.0.0.1:#{@port}", "config.ru"]
    end
  end

  def measure
    ask("/").read
    sleep SETTLES
    before = memory
    waiting = Array.new(WAITING) { ask("/wait") }
    sleep SETTLES
    took = times.sort
    answered = took.count { |seconds| seconds < MOST }
    puts format("%-24<name>s %4<at>d at the service, hello: %<answered>d of %<all>d answered, p50 %<p50>s, " \
                "p99 %<p99>s, max %<max>s; memory %+.1<memory>f MiB",
                name: [@program, *@options].join(" "), at: @service.waiting, answered: answered, all: took.length,
                p50: text(at(took, 0.5)), p99: text(at(took, 0.99)), max: text(took.last),
                memory: (memory - before) / 1024.0)
    waiting.each(&:close)
  end

  # Seconds from when each request was due, so that none is left out while others take long.
  def times
    began = now
    requests = Array.new((LASTS / EVERY).round) do |number|
      due = began + (number * EVERY)
      Thread.new do
        sleep [due - now, 0].max
        socket = ask("/")
        # A refusal is quick, and no answer.
        socket.wait_readable(MOST) && socket.read.start_with?("HTTP/1.1 200") ? now - due : MOST
      ensure
        socket&.close
      end
    end
    requests.map(&:value)
  end

  def ask(path)
    TCPSocket.new("127.0.0.1", @port).tap do |socket|
      socket.write("GET #{path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
    end
  end

  # PSS of all processes of the server, in KiB.
  def memory = ProcessFacts.proportional_bytes(ProcessFacts.tree(@pid)) / 1024

  def at(sorted, share) = sorted[((sorted.length - 1) * share).round]
  def text(seconds) = seconds < MOST ? format("%.1f ms", seconds * 1000) : "no answer"
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def wait_for_port
    TCPSocket.new("127.0.0.1", @port).close
  rescue Errno::ECONNREFUSED
    sleep 0.1
    retry
  end
end

servers = ARGV.empty? ? ["highball -t 3..32", "highball -t 3", "puma"] : ARGV
servers.each { |server| WaitingBench.new(server).run }
