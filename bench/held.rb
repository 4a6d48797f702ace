# frozen_string_literal: true

# Many clients whose responses the front holds: the server's memory for each of them, whether a message is lost, doubled
# or out of order while messages are broadcast to all and workers restart, when messages arrive, and how long other
# requests take meanwhile.
#
#     ruby bench/held.rb [CLIENTS [BROADCASTS A SECOND]] [-- OPTIONS OF HIGHBALL]
#
# Needs Debian's package ruby-nio4r.

require_relative "beside"
require_relative "../test/support/highball_server"
require_relative "../test/support/hub_app"
require "io/wait"
require "nio"
require "socket"
require "tmpdir"

# A client that reads messages, each a number and the time when it was published. As EventSource does, it connects again
# when the response ends, with the id of its last event.
class HeldClient
  # How often it connects again.
  TRIES = 10

  attr_reader :socket, :delays, :refused, :closed, :problem

  def initialize(port)
    @port = port
    @delays = []
    # Statuses of refusals; how often a held response has ended before the last message.
    @refused = []
    @closed = 0
    connect
  end

  # Reads what is there. Returns :goes_on, :again (its connection has ended, and it may connect again) or :over.
  def read(now)
    case (bytes = @socket.read_nonblock(16_384, exception: false))
    when :wait_readable then :goes_on
    when nil then ended
    else take(bytes, now)
    end
  rescue Errno::ECONNRESET
    ended
  end

  # Connects after a pause.
  def connect(pause = 0)
    sleep pause
    @socket = TCPSocket.new("127.0.0.1", @port)
    resume = @last_id && "Last-Event-ID: #{@last_id.split.last}\r\n"
    @socket.write("GET /events HTTP/1.1\r\nHost: bench\r\n#{resume}\r\n")
    @rest = +""
    @status = nil
  end

  def holds? = @status&.start_with?("200") || false

  private

  def ended
    @socket.close
    holds? ? @closed += 1 : @refused << (@status || "no answer")
    return :again if @closed + @refused.length < TRIES

    fail_with("given up: refused #{@refused}, closed #{@closed} times")
  end

  def take(bytes, now)
    @rest << bytes
    @status ||= @rest[%r{\AHTTP/1.1 (.*)\r}, 1]
    return @status ? ended : :goes_on unless holds?

    whole = @rest.slice!(0, (@rest.rindex("\n") || -1) + 1)
    whole.each_line do |line|
      @last_id = line if line.start_with?("id: ")
      next unless line.start_with?("data: ")

      _, number, sent = line.split
      return :over if number == "end"

      fail_with("message #{number} after #{@delays.length - 1}") if number.to_i != @delays.length
      @delays << (now - sent.to_f)
    end
    :goes_on
  end

  def fail_with(problem)
    @problem ||= problem
    :over
  end
end

# The measurement.
class HeldBench
  include Beside

  SECONDS = 10
  AT_ONCE = 100
  PAUSE = 0.01

  def initialize(clients, per_second, options)
    @clients = clients
    @pause = 1.0 / per_second
    @options = options
  end

  def run
    Dir.mktmpdir("highball-held") do |folder|
      File.write(File.join(folder, "config.ru"), HubApp::CONFIG)
      @server = HighballServer.start(folder, *@options, workers: 2)
      @folder = folder
      measure
    ensure
      @server&.finish
    end
  end

  private

  def measure
    100.times { @server.get("/") }
    before = memory
    alone = percentiles(hello(3, "/"))
    all = open_all
    idle = memory
    results = in_a_process(all) do
      read_all(all)
      all.map { |one| [one.delays, one.problem, one.refused, one.closed] }
    end
    publisher = start_publishing
    beside = percentiles(hello(SECONDS, "/"))
    HighballServer.run("restart", *@server.which, within: 60)
    publisher.close_write
    sent = publisher.read.to_i
    report(result(results), sent, (idle - before) / @clients.to_f, alone, beside)
  end

  # Some at a time, so that the queue does not overflow. Returns when their responses have begun.
  def open_all
    Array.new(@clients).each_slice(AT_ONCE).flat_map do |some|
      some.map { HeldClient.new(@server.port) }.tap { |clients| await_responses(clients) }
    end
  end

  def await_responses(clients)
    until clients.empty?
      clients = clients.select do |client|
        client.socket.wait_readable(30)
        client.read(now) == :again
      end
      clients.each { |client| client.connect(PAUSE) }
    end
  end

  def read_all(all)
    selector = NIO::Selector.new
    all.reject(&:problem).each { |client| selector.register(client.socket, :r).value = client }
    until selector.empty?
      selector.select do |monitor|
        outcome = monitor.value.read(now)
        next if outcome == :goes_on

        selector.deregister(monitor.io)
        next unless outcome == :again

        monitor.value.connect(PAUSE)
        selector.register(monitor.value.socket, :r).value = monitor.value
      end
    end
  end

  # A process that publishes until its input ends.
  def start_publishing
    code = <<~RUBY
      require "io/wait"
      number = 0
      now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      until $stdin.wait_readable(#{@pause})
        Highball.publish("ticks", "\#{number} \#{now.call} \#{'x' * 100}")
        number += 1
      end
      Highball.publish("ticks", "end")
      puts number
    RUBY
    environment = { "HIGHBALL_CONTROL" => HighballServer::CONTROL, "HIGHBALL_HUB" => nil }
    IO.popen(environment, [RbConfig.ruby, "-I", File.join(HighballServer::ROOT, "lib"), "-r", "highball", "-e", code],
             "r+", chdir: @folder)
  end

  def report(all, sent, each, alone, beside)
    delays, problems, refused, closed = all.transpose
    missing = delays.sum { |some| [sent - some.length, 0].max }
    puts "#{@clients} clients, #{sent} messages to each: #{missing} of #{@clients * sent} missing; " \
         "#{problems.compact.length} clients with other numbers than expected"
    problems.compact.tally.each { |problem, count| puts "  #{count}: #{problem}" }
    puts "  refused, and asked for again: #{refused.flatten.tally}; held responses that ended early: #{closed.sum}"
    puts "  memory: #{each.round(1)} KiB each"
    puts "  from publish to client, ms (median, p99, most): " \
         "#{percentiles(delays.flatten.map { |delay| delay * 1000 }.sort).join(', ')}"
    puts "  hello, ms: #{alone.join(', ')} alone; #{beside.join(', ')} beside"
  end
end

options = ARGV.include?("--") ? ARGV.slice!(ARGV.index("--")..).drop(1) : []
clients, per_second = ARGV.map { |text| Integer(text) }
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
HeldBench.new(clients || 2000, per_second || 10, options).run
