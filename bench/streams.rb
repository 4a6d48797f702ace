# frozen_string_literal: true

# Many clients of one worker that each get a few tokens a second: the memory of all processes for each, whether a
# token is lost or out of order, and how long other requests take beside them.
#
#     ruby bench/streams.rb [CLIENTS [SECONDS]] [-- OPTIONS OF HIGHBALL]
#     STREAM_PATHS=each ruby bench/streams.rb 2000 120 -- --fibers "/each"
#
# STREAM_PATHS=each,call,live chooses the forms of examples/chat-model. Needs Debian's packages ruby-rails and
# ruby-nio4r.

require_relative "beside"
require_relative "../test/support/highball_server"
require "io/wait"
require "nio"
require "socket"

# A client that reads tokens, and notes what is wrong with them.
class TokenClient
  attr_reader :socket, :tokens, :problem

  def initialize(port, path)
    @socket = TCPSocket.new("127.0.0.1", port)
    @socket.write("GET #{path} HTTP/1.1\r\nHost: bench\r\n\r\n")
    @rest = +""
    @tokens = 0
  end

  # Reads what is there. Returns whether the response goes on.
  def read
    case (bytes = @socket.read_nonblock(16_384, exception: false))
    when :wait_readable then true
    when nil then fail_with("closed after #{@tokens} tokens")
    else take(bytes)
    end
  end

  private

  def take(bytes)
    @rest << bytes
    while (line = @rest.slice!(/\A[^\n]*\n/))
      return false if line.start_with?("event: done")
      next unless line.start_with?("id: ")

      number = line[/\d+/].to_i
      fail_with("token #{number} after #{@tokens - 1}") if number != @tokens
      @tokens += 1
    end
    true
  end

  def fail_with(problem)
    @problem ||= problem
    false
  end
end

# The measurement.
class StreamsBench
  include Beside

  PER_SECOND = 5
  AT_A_TIME = 100

  def initialize(clients, seconds, options)
    @clients = clients
    @tokens = seconds * PER_SECOND
    @options = options
  end

  def run(form)
    @server = HighballServer.start("chat-model", "--max-streams", @clients.to_s, *@options, ready: "/hello", threads: 3)
    100.times { @server.get("/hello") }
    before = memory
    alone = percentiles(hello(3, "/hello"))
    open_all("/#{form}?tokens=#{@tokens}&per_second=#{PER_SECOND}")
    results = start_reading
    results.gets # when each client has a token
    beside = percentiles(hello(10, "/hello"))
    during = memory
    @results = result(results)
    report(form, before, during, alone, beside)
  ensure
    @server&.finish
  end

  private

  attr_reader :all

  # Some at a time, so that the queue does not overflow.
  def open_all(path)
    @all = @clients.times.each_slice(AT_A_TIME).flat_map do |some|
      some.map { TokenClient.new(@server.port, path) }.each { |client| client.socket.wait_readable(30) }
    end
  end

  # It writes a line once each client has a token, and then the tokens and the problem of each.
  def start_reading
    in_a_process(all) do |writer|
      Thread.new do
        sleep 0.2 until all.all? { |client| client.tokens.positive? || client.problem }
        writer.puts
      end
      read_all
      all.map { |client| [client.tokens, client.problem] }
    end
  end

  def read_all
    selector = NIO::Selector.new
    all.each { |client| selector.register(client.socket, :r).value = client }
    until selector.empty?
      selector.select do |monitor|
        next if monitor.value.read

        selector.deregister(monitor.io)
        monitor.io.close
      end
    end
  end

  def report(form, before, during, alone, beside)
    wait_for_threads
    after = memory
    lazily = ProcessFacts.lazily_freed_bytes(ProcessFacts.tree(@server.pid)) / 1024
    lost = @results.count { |tokens, problem| problem || tokens != @tokens }
    puts "#{form}: #{@clients} clients, #{@tokens} tokens each, #{lost} with lost or reordered tokens"
    @results.filter_map(&:last).tally.each { |problem, count| puts "  #{count}: #{problem}" }
    puts "  memory: #{before / 1024} MiB before, #{during / 1024} with them, #{after / 1024} #{WAIT_AFTER} s after " \
         "(#{lazily / 1024} of them freed, and the kernel's to take); " \
         "#{(during - before) / @clients} KiB each"
    puts "  hello, ms (median, p99, most): #{alone.join(', ')} alone; #{beside.join(', ')} beside them"
  end

  WAIT_AFTER = 15
  def wait_for_threads = sleep(WAIT_AFTER)
end

options = ARGV.include?("--") ? ARGV.slice!(ARGV.index("--")..).drop(1) : []
clients, seconds = ARGV.map { |text| Integer(text) }
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
ENV.fetch("STREAM_PATHS", "each,call,live").split(",").each do |form|
  StreamsBench.new(clients || 500, seconds || 60, options).run(form)
end
