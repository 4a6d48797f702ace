# frozen_string_literal: true

# How long after an event the clients of an event stream have it, with and without compression:
#
#     ruby bench/event_streams.rb [ROUNDS]
#
# Each round measures both ways, one after the other, with EVENTS events to CLIENTS clients.

require_relative "../test/support/highball_server"
require_relative "../test/support/http_connection"
require "tmpdir"
require "zlib"

# An application that sends each event to all of its clients, and these.
class EventStreams
  CLIENTS = 200
  EVENTS = 50
  PAUSE = 0.05
  APP = <<~RUBY
    QUEUES = Queue.new
    ALL = []

    run lambda { |env|
      ALL.each { |queue| queue << env["QUERY_STRING"] } if env["PATH_INFO"] == "/publish"
      ALL.clear if env["QUERY_STRING"] == "end"
      next [200, {}, []] unless env["PATH_INFO"] == "/events"

      body = proc do |stream|
        ALL << (queue = Queue.new)
        stream.write("data: hello\\n\\n")
        while (event = queue.pop) != "end"
          stream.write("data: \#{event} \#{'some text of an event ' * 10}\\n\\n")
        end
        stream.close
      end
      [200, { "content-type" => "text/event-stream", "cache-control" => "no-cache" }, body]
    }
  RUBY

  # A client, which reads what is there.
  class Client
    attr_reader :socket, :events

    def initialize(port, encoding)
      @socket = TCPSocket.new("127.0.0.1", port)
      @socket.write("GET /events HTTP/1.1\r\nHost: test\r\nAccept-Encoding: #{encoding}\r\n\r\n")
      @inflate = Zlib::Inflate.new(31) if encoding == "gzip"
      @head = +"".b
      @rest = +"".b
      @text = +""
      @events = 0
    end

    # The seconds since each event that has come.
    def read
      bytes = @socket.read_nonblock(65_536, exception: false)
      return [] unless bytes.is_a?(String)

      now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      @text << decoded(body(bytes))
      times = []
      while (event = @text.slice!(/\Adata: (.*?)\n\n/m))
        @events += 1
        times << (now - event[/\Adata: ([\d.]+)/, 1].to_f) if event.match?(/\Adata: \d/)
      end
      times
    end

    private

    # What is in the chunks that have come.
    def body(bytes)
      @rest << bytes
      @head << @rest.slice!(/.*?\r\n\r\n/mn).to_s if @head.empty?
      data = +"".b
      while (size = @rest[/\A(\h+)\r\n/n, 1]) && @rest.bytesize >= size.length + 4 + size.to_i(16)
        @rest.slice!(0, size.length + 2)
        data << @rest.slice!(0, size.to_i(16))
        @rest.slice!(0, 2)
      end
      data
    end

    def decoded(data) = @inflate ? @inflate.inflate(data) : data
  end

  def run(rounds)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/config.ru", APP)
      server = HighballServer.start(folder, "--max-output", "none", threads: CLIENTS + 2)
      rounds.times { %w[identity gzip].each { |encoding| puts "#{encoding.ljust(9)}#{measure(server, encoding)}" } }
    ensure
      server&.stop
    end
  end

  private

  def measure(server, encoding)
    clients = Array.new(CLIENTS) { Client.new(server.port, encoding) }
    read_until(clients) { clients.all? { |client| client.events == 1 } }
    times = EVENTS.times.flat_map do |number|
      sleep PAUSE
      Thread.new { server.get("/publish?#{Process.clock_gettime(Process::CLOCK_MONOTONIC)}") }
      read_until(clients) { clients.all? { |client| client.events == number + 2 } }
    end
    server.get("/publish?end")
    clients.each { |client| client.socket.close }
    in_words(times.sort)
  end

  # Reads from all that have something until the block is true. Returns the times of the events.
  def read_until(clients)
    by_socket = clients.to_h { |client| [client.socket, client] }
    times = []
    Deadline.wait("events", within: 30, every: 0) do
      ready, = IO.select(by_socket.keys, nil, nil, 1)
      ready&.each { |socket| times.concat(by_socket[socket].read) }
      yield
    end
    times
  end

  def in_words(times)
    percentile = ->(share) { (times[((times.length - 1) * share).round] * 1000).round(1) }
    "#{times.length} events: p50 #{percentile[0.5]} ms, p99 #{percentile[0.99]} ms, slowest #{percentile[1]} ms"
  end
end

EventStreams.new.run(Integer(ARGV.first || 3))
