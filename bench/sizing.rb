# frozen_string_literal: true

# A load that steps from 1 to 50 requests a second, each of which takes 20 ms of a CPU: how long do requests take, and
# how much memory is in use, with a pool that follows the load and with pools of fixed sizes?
#
#     ruby bench/sizing.rb WAY...        # `ruby bench/sizing.rb` lists the ways
#
# Requests are sent at random times, the same for each way, whether or not those before have been answered. Prints a row
# of a table for each way. What is measured begins when a pool that follows the load has settled at its least.

require_relative "cluster/open_loop"
require_relative "deployment"
require_relative "turns"

# Its workers share what is loaded before they are forked.
class PreloadedPuma < Puma
  def start = super("--preload")
end

# One way to serve under the load.
class Sizing
  include Turns

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

  # Their titles, and what serves: the server, its workers, and for how long it settles.
  WAYS = {
    "auto" => ["Highball, `workers = auto`", Highball, "auto", SETTLING_SECONDS],
    "highball-1" => ["Highball, 1 worker", Highball, 1, 3],
    "highball-2" => ["Highball, 2 workers", Highball, 2, 3],
    "highball-3" => ["Highball, 3 workers", Highball, 3, 3],
    "highball-4" => ["Highball, 4 workers", Highball, 4, 3],
    "puma-2" => ["Puma, 2 workers", PreloadedPuma, 2, 3],
    "puma-3" => ["Puma, 3 workers", PreloadedPuma, 3, 3],
    "puma-4" => ["Puma, 4 workers", PreloadedPuma, 4, 3],
    "passenger" => ["Passenger, a pool of 1 to 4", Passenger, 1..4, 3]
  }.freeze

  def initialize(title, kind, size, settling)
    @title = title
    @kind = kind
    @size = size
    @settling = settling
  end

  # The row of the table.
  def run
    application = Deployment::Application.new(folder: app_of(APP), environment: {}, workers: @size, threads: THREADS,
                                              path: "/")
    @kind.open(application) do |server|
      @server = server
      warm
      load(SLOW, @settling)
      row
    end
  ensure
    FileUtils.rm_r(application.folder)
  end

  def self.header
    ["| | p50 | p99 | longest | failed | MiB at #{SLOW}/s | MiB at #{FAST}/s | MiB on average |",
     "| --- | --: | --: | --: | --: | --: | --: | --: |"]
  end

  private

  # Each worker of a fixed number has had requests. A pool does not grow for this.
  def warm
    count = @size.is_a?(Integer) ? @size * THREADS * 3 : 1
    Array.new(count) { Thread.new { @server.ask } }.each(&:join)
  end

  def row
    slow = looks_during { load(SLOW, SLOW_SECONDS) }
    answers = nil
    fast = looks_during { answers = load(FAST, FAST_SECONDS) }
    times = answers.map(&:first)
    failed = answers.count { |_, result| result != "200" }
    ms = [0.5, 0.99, 1.0].map { |share| (at(times, share) * 1000).round }
    memory = [mean(slow), mean(fast), (mean(slow) + mean(fast)) / 2].map(&:round)
    "| #{[@title, *ms.map { |time| "#{time} ms" }, failed, *memory].join(' | ')} |"
  end

  # How long each request took, and its result.
  def load(rate, seconds)
    load = OpenLoop.new("127.0.0.1", @server.port, rate, 1)
    answers = []
    ending = Thread.new do
      sleep seconds
      load.stop
    end
    load.run { |_due, time, _method, _machine, result| answers << [time, result] }
    ending.join
    answers
  end

  def looks_during
    done = false
    bytes = []
    looks = Thread.new do
      until done
        bytes << proportional_bytes
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
  def proportional_bytes
    @server.processes.sum do |one|
      ProcessFacts.proportional_bytes([one])
    rescue SystemCallError
      0 # it has ended
    end
  end

  def mean(bytes) = bytes.sum / bytes.length.to_f / MIB
end

if $PROGRAM_NAME == __FILE__
  ways = ARGV.empty? ? abort("ruby bench/sizing.rb #{Sizing::WAYS.keys.join('|')}...") : ARGV
  puts Sizing.header
  ways.each { |way| puts Sizing.new(*Sizing::WAYS.fetch(way)).run }
end
