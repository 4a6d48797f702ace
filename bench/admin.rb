# frozen_string_literal: true

# What metrics cost, and how soon health checks are answered while all workers are stuck:
#
#     ruby bench/admin.rb [ROUNDS]
#
# "Hello World" with one worker, 25 connections of wrk for SECONDS: without `admin`, and with it and a scrape of
# /metrics each second. Each round starts both servers, and has PAIRS measurements of both, in turns one or the other
# first; the processor time is that of all processes of the server, by /proc, for each request. Then 4 workers with 12
# stuck threads, and ASKED questions for each of /livez and /readyz.

require_relative "../test/support/highball_server"
require_relative "../test/support/http_connection"
require "tmpdir"

# The measurement.
class AdminCost
  SECONDS = 2
  PAIRS = 4
  CONNECTIONS = 25
  ASKED = 500
  STUCK = <<~RUBY
    run ->(env) { sleep if env["PATH_INFO"] == "/stuck"; [200, {}, ["ok"]] }
  RUBY
  HELLO = File.expand_path("apps/hello", __dir__)

  def initialize(rounds)
    @rounds = rounds
  end

  def run
    Dir.mktmpdir("highball-admin") do |folder|
      @folder = folder
      @socket = File.join(folder, "admin.sock")
      report_checks
      report_cost(Array.new(@rounds) { round_of_pairs }.flatten(1))
    end
  end

  private

  # Microseconds for each request, without metrics and with them, of each pair.
  def round_of_pairs
    serve(HELLO, workers: 1, threads: 5) do |without|
      serve(HELLO, "--admin", "unix:#{@socket}", workers: 1, threads: 5) do |with|
        [without, with].each { |server| load_for(server, 1) }
        Array.new(PAIRS) { |number| pair(without, with, number) }
      end
    end
  end

  def pair(without, with, number)
    ways = [-> { cost(without) }, -> { scraping { cost(with) } }]
    number.even? ? ways.map(&:call) : ways.reverse.map(&:call).reverse
  end

  def cost(server)
    before = cpu_us(server)
    requests = load_for(server, SECONDS)
    (cpu_us(server) - before) / requests
  end

  def serve(app, *options, **settings)
    server = HighballServer.start(app, *options, **settings)
    yield server
  ensure
    server&.finish
  end

  # Ticks of /proc are 10 ms: half a percent of what is measured, at most.
  def cpu_us(server) = ProcessFacts.cpu_seconds(server.pids) * 1e6

  # The number of requests.
  def load_for(server, seconds)
    output = IO.popen(["wrk", "-t1", "-c#{CONNECTIONS}", "-d#{seconds}s", "http://127.0.0.1:#{server.port}/"], &:read)
    raise output if output.include?("Non-2xx") || output.include?("Socket errors")

    Integer(output[/(\d+) requests in/, 1])
  end

  def scraping
    scraper = Thread.new do
      loop do
        raise "no metrics" unless ask("/metrics").body.include?("highball_http_requests_total")

        sleep 1
      end
    end
    yield
  ensure
    scraper&.kill&.join # raises what it has met
  end

  def ask(path) = HttpConnection.unix(@socket).use { |connection| connection.request("GET", path) }

  def report_cost(pairs)
    without, with = pairs.transpose.map { |times| times.sort[times.length / 2] }
    more = pairs.map { |off, on| ((on / off) - 1) * 100 }.sort
    mean = more.sum / more.length
    error = Math.sqrt(more.sum { |one| (one - mean)**2 } / (more.length - 1) / more.length)
    puts format("CPU for each request: %<without>.2f µs without, %<with>.2f µs with metrics",
                without: without, with: with)
    puts format("with metrics, in %<pairs>d pairs: %<median>+.2f %% (median), %<mean>+.2f %% ± %<error>.2f (mean and " \
                "its standard error), quartiles %<low>+.2f %% and %<high>+.2f %%",
                pairs: pairs.length, median: more[more.length / 2], mean: mean, error: error,
                low: more[more.length / 4], high: more[more.length * 3 / 4])
  end

  def report_checks
    app = File.join(@folder, "stuck")
    Dir.mkdir(app)
    File.write(File.join(app, "config.ru"), STUCK)
    options = ["--admin", "unix:#{@socket}", "--stuck-after", "1s", "--request-timeout", "10m"]
    serve(app, *options, workers: 4, threads: 3) do |server|
      clients = Array.new(12) { server.connect.tap { |client| client.send_request("GET", "/stuck") } }
      Deadline.wait("the application to be stuck", within: 20) { ask("/readyz").status == 503 }
      { "/livez" => 200, "/readyz" => 503 }.each { |path, status| report_check(path, status) }
      clients.each(&:close)
    end
  end

  def report_check(path, status)
    answer = nil
    times = Array.new(ASKED) do
      from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      answer = ask(path)
      raise "#{path}: #{answer.status}" unless answer.status == status && answer.body.include?("stuck")

      (Process.clock_gettime(Process::CLOCK_MONOTONIC) - from) * 1000
    end
    times.sort!
    puts format("%<path>s with all workers stuck: %<status>d within %<median>.2f ms (median), %<late>.2f ms (99 of " \
                "100), %<last>.2f ms (all): %<text>s",
                path: path, status: status, median: times[ASKED / 2], late: times[ASKED * 99 / 100], last: times.last,
                text: answer.body.lines[1].strip)
  end
end

AdminCost.new(Integer(ARGV[0] || 6)).run if $PROGRAM_NAME == __FILE__
