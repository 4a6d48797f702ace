# frozen_string_literal: true

# What it costs to look into an application: CPU time per request of all processes of the server, with and without, in
# turns whose order alternates.
#
#     ruby bench/observing.rb slow                  slow_request = "2s" and "off", a page of a few bytes
#     ruby bench/observing.rb traces                traces of 1 % of the requests, and none
#     ruby bench/observing.rb cpu|wall|allocations  during `highball profile` in this mode, and without, a Rails page
#     ruby bench/observing.rb collectors            how long 5,000 requests a second take while all are traced and the
#                                                   collector takes spans, refuses them, is slow or away
#
# PAIRS (12), TURN (seconds, 5) and APP (the folder of an application) change what is measured. Needs Debian's wrk, or
# nghttp2-client for the collectors; a profile also ruby-rails.

require_relative "../test/support/free_port"
require_relative "turns"

# Servers for an application that answers at once, and numbers of what is measured.
module Observed
  include Turns

  private

  def serve(*options, app: ENV.fetch("APP") { hello }, **settings)
    HighballServer.start(app, "--access-log", "none", *options, within: 120, **settings)
  end

  def hello = @hello ||= app_of(HELLO)
end

# A collector in a separate process: it reads what it gets, and answers with this status, after this time.
class Collector
  def initialize(status: 200, after: 0)
    @server = TCPServer.new("127.0.0.1", 0)
    @pid = fork { loop { Thread.new(@server.accept) { |socket| serve(socket, status, after) } } }
  end

  def endpoint = "http://127.0.0.1:#{@server.addr[1]}"

  def close
    Process.kill("KILL", @pid)
    Process.wait(@pid)
  end

  private

  def serve(socket, status, after)
    loop do
      head = socket.gets("\r\n\r\n") or break
      socket.read(head[/^content-length: (\d+)/i, 1].to_i)
      sleep after
      socket.write("HTTP/1.1 #{status} X\r\ncontent-length: 0\r\n\r\n")
    end
  rescue SystemCallError
    nil # the server has closed it
  end
end

# One comparison of CPU times.
class CostBench
  include Observed

  # CPU time per request in microseconds, and requests a second.
  Turn = Struct.new(:cpu, :rate)

  def initialize(what)
    @what = what
    @servers = {}
  end

  def run
    @servers = start
    @servers.each_value { |server| load(server) } # warm-up
    report(Array.new(PAIRS) { |number| pair(number) })
  ensure
    @servers.each_value(&:finish)
    @collector&.close
  end

  private

  def profile? = !%w[slow traces].include?(@what)

  def start
    case @what
    when "slow" then { with: serve("--slow-request", "2s"), without: serve("--slow-request", "off") }
    when "traces"
      @collector = Collector.new
      sampled = { "OTEL_TRACES_SAMPLER" => "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG" => "0.01" }
      { with: serve("--otlp-endpoint", @collector.endpoint, env: sampled), without: serve }
    else
      app = ENV.fetch("APP") { File.join(HighballServer::EXAMPLES, "blog") }
      server = serve(app: app)
      { with: server, without: server }
    end
  end

  def pair(number)
    order = number.even? ? %i[with without] : %i[without with]
    order.to_h { |side| [side, turn(side)] }
  end

  def turn(side)
    server = @servers.fetch(side)
    profile? && side == :with ? profiling(server) { measure(server) } : measure(server)
  end

  # Runs the block while a profile is taken.
  def profiling(server)
    profile = Thread.new do
      HighballServer.run("profile", "--mode", @what, "--seconds", (TURN + 2).to_s, "--output", "-", *server.which,
                         within: TURN + 60)
    end
    sleep 0.01 until sampled?(server)
    measured = yield
    raise "the profile has ended before" unless sampled?(server)

    text, status = profile.value
    status.success? ? measured : raise(text)
  end

  def sampled?(server)
    @pids ||= server.worker_pids
    @pids.all? { |pid| ProcessFacts.sampled?(pid) }
  end

  def measure(server)
    pids = ProcessFacts.tree(server.pid)
    before = ProcessFacts.cpu_seconds(pids)
    requests = load(server)
    Turn.new((ProcessFacts.cpu_seconds(pids) - before) * 1e6 / requests, requests / TURN)
  end

  # Returns how many requests were answered.
  def load(server)
    text = wrk(server.port)
    raise text if text.match?(/Non-2xx|Socket errors/)

    requests_in(text)
  end

  def report(pairs)
    puts "#{@what}: #{PAIRS} pairs of #{TURN} s"
    %i[with without].each do |side|
      turns = pairs.map { |pair| pair.fetch(side) }
      cpu, rate = [turns.map(&:cpu), turns.map(&:rate)].map { |values| middle(values) }
      puts format("  %-8<side>s %8.2<cpu>f µs of CPU per request, %6<rate>d requests/s",
                  { side: side, cpu: cpu, rate: rate })
    end
    ratios = pairs.map { |pair| ((pair[:with].cpu / pair[:without].cpu) - 1) * 100 }
    puts format("  difference %+.2<middle>f %% of CPU (half of the pairs: %+.2<low>f to %+.2<high>f)",
                middle: middle(ratios), low: at(ratios, 0.25), high: at(ratios, 0.75))
  end
end

# How long requests take beside collectors of each kind.
class CollectorsBench
  include FreePort
  include Observed

  RATE = 5_000 # requests a second
  CLIENTS = 50

  def run
    takes, refuses, slow = [{}, { status: 503 }, { after: 30 }].map { |answer| Collector.new(**answer) }
    @servers = { "no traces" => serve, "takes spans" => traced(takes.endpoint), "refuses" => traced(refuses.endpoint),
                 "is slow" => traced(slow.endpoint), "is away" => traced("http://127.0.0.1:#{free_port}") }
    measured = @servers.transform_values { [] }
    PAIRS.times { @servers.each { |kind, server| measured[kind].concat(times(server)) } }
    measured.each { |kind, times| report(kind, times) }
  ensure
    @servers&.each_value(&:finish)
    [takes, refuses, slow].each { |collector| collector&.close }
  end

  private

  def traced(endpoint) = serve("--otlp-endpoint", endpoint)

  # Times of all requests of a turn, in ms.
  def times(server)
    Dir.mktmpdir do |folder|
      log = File.join(folder, "log")
      command = ["h2load", "--h1", "-c", CLIENTS.to_s, "-t", "1", "--rps", (RATE / CLIENTS).to_s, "-D", TURN.to_s,
                 "--log-file", log, "http://127.0.0.1:#{server.port}/"]
      text = IO.popen(command, &:read)
      raise text unless text.match?(/ 0 failed, 0 errored, 0 timeout/)

      File.foreach(log).map { |line| line.split("\t")[2].to_f / 1000 }
    end
  end

  def report(kind, times)
    memory = ProcessFacts.private_dirty_bytes([@servers.fetch(kind).server_pid]) / (1024.0**2)
    figures = { kind: kind, count: times.length, half: middle(times), most: at(times, 0.99), all: times.max,
                memory: memory }
    puts format("  %-12<kind>s %7<count>d requests, p50 %<half>.2f ms, p99 %<most>.2f ms, longest %<all>.1f ms; " \
                "the server has %<memory>.1f MiB", figures)
  end
end

ARGV.each { |what| (what == "collectors" ? CollectorsBench.new : CostBench.new(what)).run }
