# frozen_string_literal: true

# A load that steps from 1 to 50 requests a second, each of which takes 20 ms of a CPU: how long do requests take, and
# how much memory is in use, with a pool that follows the load and with pools of fixed sizes?
#
#     ruby bench/sizing.rb WAY...        # `ruby bench/sizing.rb` lists the ways
#
# Requests are sent at random times, the same for each way, whether or not those before have been answered. Prints a row
# of a table for each way. What is measured begins when a pool that follows the load has settled at its least.

require_relative "../test/support/deadline"
require_relative "../test/support/free_port"
require_relative "../test/support/highball_server"
require_relative "../test/support/process_facts"
require_relative "cluster/open_loop"
require "etc"
require "tmpdir"

# One way to serve under the load.
class Sizing
  include FreePort

  SLOW = 1 # requests a second before the step,
  FAST = 50 # and after it
  SLOW_SECONDS = 15
  FAST_SECONDS = 40
  # Time at the slow rate until a pool that follows the load has shrunk.
  SETTLING_SECONDS = 85
  EVERY = 0.25 # seconds between two looks at the memory
  MIB = 1 << 20
  THREADS = 3
  # 20 ms of a CPU, and 40 MiB that each worker fills, as workers of large applications do.
  APP = <<~RUBY
    OWN = []
    FILLING = Mutex.new
    run lambda { |_env|
      FILLING.synchronize { OWN << Array.new(40 << 10) { "x" * 1000 } if OWN.empty? }
      finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.02
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
      [200, { "content-type" => "text/plain", "content-length" => "2" }, ["ok"]]
    }
  RUBY

  HIGHBALL = lambda do |workers, port, app|
    [HighballServer::BINARY, "serve", "-e", "production", "-b", "127.0.0.1", "-p", port, "-w", workers, "-t", THREADS,
     app]
  end
  PUMA = lambda do |workers, port, app|
    ["puma", "--no-config", "--quiet", "--environment", "production", "--workers", workers, "--preload",
     "--threads", "#{THREADS}:#{THREADS}", "--bind", "tcp://127.0.0.1:#{port}", "#{app}/config.ru"]
  end
  PID_FILE = "passenger.pid"
  # Its pool grows from one process when all are busy. Each has one thread: more are a part of its Enterprise version.
  PASSENGER = lambda do |pool, port, app|
    ["passenger", "start", app, "--engine", "builtin", "--environment", "production", "--address", "127.0.0.1",
     "--port", port, "--min-instances", pool.min, "--max-pool-size", pool.max, "--max-request-queue-size", 4096,
     "--disable-turbocaching", "--no-friendly-error-pages", "--log-level", 2, "--disable-security-update-check",
     "--disable-anonymous-telemetry", "--no-install-runtime", "--log-file", "#{app}/passenger.log",
     "--pid-file", "#{app}/#{PID_FILE}", "--instance-registry-dir", app]
  end
  # Their titles, and what serves: the command line, its size, and for how long it settles.
  WAYS = {
    "auto" => ["Highball, `workers = auto`", HIGHBALL, "auto", SETTLING_SECONDS],
    "highball-1" => ["Highball, 1 worker", HIGHBALL, 1, 3],
    "highball-2" => ["Highball, 2 workers", HIGHBALL, 2, 3],
    "highball-3" => ["Highball, 3 workers", HIGHBALL, 3, 3],
    "highball-4" => ["Highball, 4 workers", HIGHBALL, 4, 3],
    "puma-2" => ["Puma, 2 workers", PUMA, 2, 3],
    "puma-3" => ["Puma, 3 workers", PUMA, 3, 3],
    "puma-4" => ["Puma, 4 workers", PUMA, 4, 3],
    "passenger" => ["Passenger, a pool of 1 to 4", PASSENGER, 1..4, 3]
  }.freeze

  def initialize(title, command, size, settling)
    @title = title
    @command = command
    @size = size
    @settling = settling
  end

  # The row of the table.
  def run
    Dir.mktmpdir do |folder|
      File.write("#{folder}/config.ru", APP)
      @pid_file = "#{folder}/#{PID_FILE}"
      port = free_port
      pid = start(folder, port)
      wait_for_answer(port, pid)
      warm(port)
      load(port, SLOW, @settling)
      row(pid, port)
    ensure
      stop(pid) if pid
    end
  end

  def self.header
    ["| | p50 | p99 | longest | failed | MiB at #{SLOW}/s | MiB at #{FAST}/s | MiB on average |",
     "| --- | --: | --: | --: | --: | --: | --: | --: |"]
  end

  private

  def start(folder, port)
    environment = HighballServer::ENVIRONMENT.merge("HIGHBALL_CONTROL" => folder)
    command = @command.call(@size, port, folder).map(&:to_s)
    Process.spawn(environment, *command, chdir: folder, in: File::NULL, %i[out err] => "#{folder}/log", pgroup: true)
  end

  def wait_for_answer(port, pid)
    Deadline.wait("an answer", within: 30) do
      raise "it has ended" if Process.waitpid(pid, Process::WNOHANG)

      request(port)&.status == 200
    rescue SystemCallError, EOFError
      false
    end
  end

  def request(port) = HttpConnection.tcp(port).use { |connection| connection.request("GET", "/") }

  # Each worker of a fixed number has had requests. A pool does not grow for this.
  def warm(port)
    count = @size.is_a?(Integer) ? @size * THREADS * 3 : 1
    Array.new(count) { Thread.new { request(port) } }.each(&:join)
  end

  def row(pid, port)
    slow = looks_during(pid) { load(port, SLOW, SLOW_SECONDS) }
    answers = nil
    fast = looks_during(pid) { answers = load(port, FAST, FAST_SECONDS) }
    times = answers.map(&:first).sort
    failed = answers.count { |_, result| result != "200" }
    ms = [0.5, 0.99, 1.0].map { |share| (times[((times.length - 1) * share).round] * 1000).round }
    memory = [mean(slow), mean(fast), (mean(slow) + mean(fast)) / 2].map(&:round)
    "| #{[@title, *ms.map { |time| "#{time} ms" }, failed, *memory].join(' | ')} |"
  end

  # How long each request took, and its result.
  def load(port, rate, seconds)
    load = OpenLoop.new("127.0.0.1", port, rate, 1)
    answers = []
    ending = Thread.new do
      sleep seconds
      load.stop
    end
    load.run { |_due, time, _method, _machine, result| answers << [time, result] }
    ending.join
    answers
  end

  def looks_during(pid)
    done = false
    bytes = []
    looks = Thread.new do
      until done
        bytes << proportional_bytes(pid)
        sleep EVERY
      end
    end
    yield
    bytes
  ensure
    done = true
    looks.join
  end

  # Of all processes that were started.
  def proportional_bytes(pid)
    processes(pid).sum do |one|
      ProcessFacts.proportional_bytes([one])
    rescue SystemCallError
      0 # it has ended
    end
  end

  # All that were started. Passenger's first one is no child of its command, which writes its pid to a file.
  def processes(pid)
    roots = [pid, *(File.read(@pid_file).to_i if File.exist?(@pid_file))]
    roots.flat_map { |root| ProcessFacts.tree(root) }
  end

  def mean(bytes) = bytes.sum / bytes.length.to_f / MIB

  def stop(pid)
    tree = processes(pid)
    HighballServer.kill(pid, "TERM")
    Deadline.wait("its end", within: 15) { Process.waitpid(pid, Process::WNOHANG) }
  rescue Deadline::Missed
    HighballServer.kill(pid)
    Process.wait(pid)
  ensure
    tree&.each { |one| HighballServer.kill(one) unless one == pid }
  end
end

if $PROGRAM_NAME == __FILE__
  ways = ARGV.empty? ? abort("ruby bench/sizing.rb #{Sizing::WAYS.keys.join('|')}...") : ARGV
  puts Sizing.header
  ways.each { |way| puts Sizing.new(*Sizing::WAYS.fetch(way)).run }
end
