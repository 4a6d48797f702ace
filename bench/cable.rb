# frozen_string_literal: true

# A rolling restart with many clients of Action Cable: the server's memory for each of them, when they are closed and
# back, and the broadcasts that they miss.
#
#     ruby bench/cable.rb [CLIENTS [WORKERS]] [-- OPTIONS OF HIGHBALL]
#
# Much depends on how long clients wait until they connect again: these do it at once, which is the worst case for the
# server. `CABLE_WAIT=6..12` has them wait between 6 and 12 seconds. CABLE_TLS=1 measures over TLS. CABLE_EVERY=0.05 is
# the time between two broadcasts, in seconds. CABLE_ADAPTER=highball has the server hold the WebSockets, and pass
# broadcasts on; the default is a Redis. Needs Debian's packages ruby-rails and redis-server.

require_relative "../test/support/highball_server"
require_relative "../test/support/http_connection"
require "English"
require "json"
require "nio"
require "openssl"
require "socket"
require "tmpdir"

ENV["HIGHBALL_CONTROL"] = HighballServer::CONTROL
$LOAD_PATH.unshift(File.join(HighballServer::ROOT, "lib"))
require "highball"

# A Redis that keeps nothing, for broadcasts between workers.
class CableRedis
  def initialize
    @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @pid = spawn("redis-server", "--port", @port.to_s, "--bind", "127.0.0.1", "--save", "", out: File::NULL)
    @socket = Deadline.wait("Redis", within: 20) { connect }
  end

  def config = "  adapter: redis\n  url: redis://127.0.0.1:#{@port}/1\n  channel_prefix: blog\n"

  # As the adapter does.
  def publish(text)
    words = ["PUBLISH", "blog:room", text]
    @socket.write("*3\r\n#{words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join}")
    @socket.gets
  end

  def stop
    Process.kill(:TERM, @pid)
    Process.wait(@pid)
  end

  private

  def connect
    TCPSocket.new("127.0.0.1", @port)
  rescue Errno::ECONNREFUSED
    nil
  end
end

# Highball in its place.
class CableHub
  def config = "  adapter: highball\n"
  def publish(text) = Highball.publish("cable:room", text)
  def stop = nil
end

# A client of Action Cable that subscribes to one channel, and connects again when it is closed.
class CableClient
  IDENTIFIER = '{\"channel\":\"RoomChannel\"}'
  REQUEST = "GET /cable HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: %<origin>s\r\nUpgrade: websocket\r\n" \
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
            "Sec-WebSocket-Protocol: actioncable-v1-json\r\nCookie: _blog_session=#{'x' * 300}\r\n" \
            "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" \
            "Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en\r\n\r\n".freeze
  CLOSE = 8
  MASK = "\0" * 4 # changes no byte

  def initialize(port, is_tls, events)
    @port = port
    @is_tls = is_tls
    @events = events
    @last = nil
  end

  attr_reader :io

  def connect(selector)
    @buffer = +"".b
    @in_head = true
    @io = @socket = TCPSocket.new("127.0.0.1", @port)
    @socket = secured(@io) if @is_tls
    @socket.write(format(REQUEST, origin: "http#{'s' if @is_tls}://127.0.0.1"))
    selector.register(@io, :r).value = self
  end

  # Reads what is there. Returns :ended behind the end, and :refused where the server is overloaded.
  def read
    bytes = @socket.read_nonblock(65_536, exception: false)
    return if bytes == :wait_readable
    return :ended if bytes.nil?

    @buffer << bytes
    return :refused if @in_head && read_head == :refused

    read_frames
  rescue SystemCallError, OpenSSL::SSL::SSLError
    :ended
  end

  def close
    leave
    @socket.close
  end

  private

  def secured(socket)
    OpenSSL::SSL::SSLSocket.new(socket, OpenSSL::SSL::SSLContext.new).tap do |tls|
      tls.sync_close = true
      tls.connect
    end
  end

  def read_head
    ends_at = @buffer.index("\r\n\r\n") or return
    return refused unless @buffer.start_with?("HTTP/1.1 101")

    @buffer = @buffer.byteslice((ends_at + 4)..)
    @in_head = false
  end

  def refused
    raise "no WebSocket: #{@buffer}" unless @buffer.start_with?("HTTP/1.1 503")

    :refused
  end

  def read_frames
    while !@in_head && @buffer.bytesize >= 2
      length = @buffer.getbyte(1)
      head = 2
      if length == 126
        return if @buffer.bytesize < 4

        length = @buffer.byteslice(2, 2).unpack1("n")
        head = 4
      end
      return if @buffer.bytesize < head + length

      opcode = @buffer.getbyte(0) & 0x0f
      payload = @buffer.byteslice(head, length)
      @buffer = @buffer.byteslice((head + length)..)
      opcode == CLOSE ? closed(payload) : heard(payload)
    end
  end

  def closed(payload)
    leave
    @events.note(:closed, payload.unpack1("n"))
    @socket.write([0x88, 0x80 | payload.bytesize].pack("CC") + MASK + payload)
  end

  def heard(text)
    if (number = text[/"n":(\d+)/, 1])
      count(number.to_i)
    elsif text.include?('"welcome"')
      command = %({"command":"subscribe","identifier":"#{IDENTIFIER}"})
      @socket.write([0x81, 0x80 | command.bytesize].pack("CC") + MASK + command)
    elsif text.include?('"confirm_subscription"')
      @events.subscribe(@lost_at)
      @is_subscribed = true
    end
  end

  def leave
    return unless @is_subscribed

    @is_subscribed = false
    @lost_at = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    @events.subscribed -= 1
  end

  # The broadcasts between two that were heard are lost. (Those before the first do not count.)
  def count(number)
    @events.lost += number - @last - 1 if @last && number > @last
    @events.heard += 1
    @last = number
  end
end

# What happens to the clients of a process.
class CableEvents
  # Broadcasts, and clients with a subscription.
  attr_accessor :lost, :heard, :subscribed
  attr_reader :all

  def initialize
    @lost = @heard = @subscribed = 0
    @all = []
  end

  def note(what, code = nil) = @all << [what, Process.clock_gettime(Process::CLOCK_MONOTONIC), code]

  # `since`: when the client lost its last subscription, if it had one. The event has the time between, in milliseconds.
  def subscribe(since)
    @subscribed += 1
    note(:subscribed, since && ((Process.clock_gettime(Process::CLOCK_MONOTONIC) - since) * 1000))
  end
end

# A process with some of the clients. It takes orders by a socket, and answers each: "open N", "count", "events".
class CableProcess
  def initialize(port, is_tls, wait)
    @orders, theirs = UNIXSocket.pair
    @pid = fork do
      @orders.close
      Loop.new(port, is_tls, wait, theirs).run
      exit!(0)
    end
    theirs.close
  end

  def open(count) = report("open #{count}")

  # Subscriptions so far, broadcasts heard and lost, and, if they are asked for, all events.
  def report(what)
    @orders.puts(what)
    JSON.parse(@orders.gets, symbolize_names: true)
  end

  def finish
    @orders.close
    Process.wait(@pid)
  end

  # Its clients.
  class Loop
    # Connections that are opened at a time.
    AT_ONCE = 20
    RETRY_AFTER = 1 # seconds, as the server says

    def initialize(port, is_tls, wait, orders)
      @port = port
      @is_tls = is_tls
      @wait = wait
      @orders = orders
      @events = CableEvents.new
      @selector = NIO::Selector.new
      @wanted = @opened = 0
      @again = []
    end

    def run
      @selector.register(@orders, :r)
      until @orders.closed?
        @selector.select(0.02) { |monitor| monitor.io == @orders ? obey : pass(monitor) }
        connect_more
      end
    end

    private

    def wait = @wait ? rand(@wait) : 0
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def obey
      order, count = @orders.gets&.split
      case order
      when "open"
        @wanted += count.to_i
        send_report([])
      when "count" then send_report([])
      when "events" then send_report(@events.all)
      else @orders.close
      end
    end

    def send_report(events)
      report = { subscribed: @events.subscribed, heard: @events.heard, lost: @events.lost, events: events }
      @orders.puts(JSON.generate(report))
    end

    def pass(monitor)
      client = monitor.value
      outcome = client.read
      return unless %i[ended refused].include?(outcome)

      @selector.deregister(client.io)
      client.close
      @events.note(outcome)
      @again << [now + (outcome == :refused ? RETRY_AFTER : wait), client]
    end

    def connect_more
      due, @again = @again.partition { |at, _| at <= now }
      due.each { |_, client| client.connect(@selector) && @events.note(:connected) }
      return unless @opened < @wanted && @opened - @events.subscribed < AT_ONCE

      [AT_ONCE, @wanted - @opened].min.times do
        CableClient.new(@port, @is_tls, @events).connect(@selector)
        @opened += 1
      end
    end
  end
end

# The measurement.
class Cable
  PROCESSES = 2
  FIRST = 200 # clients before memory is looked at: what all share is there then
  EVERY = Float(ENV.fetch("CABLE_EVERY", 2)) # seconds between two broadcasts
  SETTLES = 4 # seconds
  BACK_WITHIN = 200 # seconds
  CHANNEL = <<~RUBY
    class RoomChannel < ApplicationCable::Channel
      def subscribed = stream_from("room")
    end
  RUBY

  def initialize(clients, workers, options, is_tls:, wait:)
    @clients = clients
    @workers = workers
    @options = options
    @is_tls = is_tls
    @wait = wait
  end

  def run
    raise_limit
    @bus = ENV["CABLE_ADAPTER"] == "highball" ? CableHub.new : CableRedis.new
    with_app { |app| with_server(app) { measure } }
  ensure
    @bus&.stop
  end

  private

  def raise_limit
    Process.setrlimit(Process::RLIMIT_NOFILE, Process.getrlimit(Process::RLIMIT_NOFILE).last)
  end

  def with_app
    Dir.mktmpdir("highball-cable") do |folder|
      app = File.join(folder, "blog")
      FileUtils.cp_r(File.join(HighballServer::EXAMPLES, "blog"), app)
      File.write(File.join(app, "app/channels/room_channel.rb"), CHANNEL)
      File.write(File.join(app, "config/cable.yml"), "production:\n#{@bus.config}")
      Dir.chdir(app) { yield app }
    end
  end

  def with_server(app)
    @server = HighballServer.start(app, *tls, *@options, workers: @workers, within: 120)
    yield
  ensure
    puts @server.log if $ERROR_INFO && @server
    @server&.finish
  end

  def tls
    return [] unless @is_tls

    folder = Dir.mktmpdir("highball-certificate")
    at_exit { FileUtils.rm_rf(folder) }
    system("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
           "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "#{folder}/key.pem",
           "-out", "#{folder}/certificate.pem", err: File::NULL, exception: true)
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @tls_port = port
    ["-b", "tls://127.0.0.1:#{port}", "--tls-certificate", "#{folder}/certificate.pem",
     "--tls-key", "#{folder}/key.pem"]
  end

  def measure
    @processes = Array.new(PROCESSES) { CableProcess.new(@tls_port || @server.port, @is_tls, @wait) }
    open_clients(FIRST)
    before = memory
    open_clients(@clients)
    report_memory(before, memory)
    broadcasting { restart }
  ensure
    @processes&.reverse_each(&:finish) # a later process has the sockets of those before it
  end

  def open_clients(total)
    share = total / PROCESSES
    @processes.each { |process| process.open(share - (@open || 0)) }
    @open = share
    Deadline.wait("#{total} clients", within: 180) { subscribed >= share * PROCESSES }
    sleep SETTLES
  end

  def subscribed = @processes.sum { |process| process.report("count")[:subscribed] }

  # Bytes of the server's process, without its molds and workers: private dirty, and proportional.
  def memory
    server = [@server.server_pid]
    [ProcessFacts.private_dirty_bytes(server), ProcessFacts.proportional_bytes(server)]
  end

  def report_memory(before, after)
    more = (@open * PROCESSES) - FIRST
    dirty, proportional = before.zip(after).map { |from, to| (to - from) / more.to_f / 1024 }
    puts format("memory of the server for each idle WebSocket: %<dirty>.2f KiB private, %<proportional>.2f KiB PSS",
                dirty: dirty, proportional: proportional)
    puts "WebSockets by worker: #{by_worker.join(', ')}"
  end

  # New sockets of the workers.
  def by_worker
    @server.worker_pids.map do |pid|
      Dir.glob("/proc/#{pid}/fd/*").count { |path| File.socket?(path) }
    end
  end

  def broadcasting
    @sent = 0
    goes = true
    sender = Thread.new do
      while goes
        @bus.publish(JSON.generate(n: @sent += 1, text: "news"))
        sleep EVERY
      end
    end
    sleep 2
    yield
  ensure
    goes = false
    sender&.join
  end

  def restart
    from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    output, status = HighballServer.run("restart", *@server.which, within: BACK_WITHIN)
    raise output unless status.success?

    restarted = Process.clock_gettime(Process::CLOCK_MONOTONIC) - from
    Deadline.wait("the clients", within: BACK_WITHIN) do
      sleep 0.5
      states = @server.status["workers"].map { |worker| worker["state"] }
      states == ["serving"] * @workers && subscribed == @open * PROCESSES
    end
    sleep EVERY * 1.5 # a broadcast shows what was lost
    summarize(reports, from, restarted)
  end

  def reports = @processes.map { |process| process.report("events") }

  def summarize(reports, from, restarted)
    summary = CableSummary.new(reports, from, @open * PROCESSES)
    puts "the restart took #{restarted.round(1)} s", summary.lines, "broadcasts: #{@sent}"
    puts "WebSockets by worker: #{by_worker.join(', ')}"
  end
end

# What the events of all processes since a moment say.
class CableSummary
  def initialize(reports, from, clients)
    @clients = clients
    @lost = reports.sum { |report| report[:lost] }
    @heard = reports.sum { |report| report[:heard] }
    events = reports.flat_map { |report| report[:events] }.select { |_, at, _| at > from }
    @codes = events.filter_map { |what, _, code| code if what == "closed" }.tally
    @without_ms = events.filter_map { |what, _, ms| ms if what == "subscribed" }.sort
    @times = events.group_by(&:first).transform_values { |some| some.map { |_, at, _| at - from }.sort }
  end

  def lines
    ["all clients were back after #{times('subscribed').last.to_f.round(1)} s",
     "connections that ended: #{times('ended').length}, #{each(times('ended').length)} for each client; " \
     "by a close frame: #{@codes}; refused (503): #{times('refused').length}",
     "most connections again: #{most_within(1).to_i} in a second, #{most_within(0.1).to_i} in a tenth",
     "time without a subscription: #{@without_ms[@without_ms.length / 2].to_f.round} ms (median), " \
     "#{@without_ms.last.to_f.round} ms (the longest)",
     "lost: #{@lost} of #{@lost + @heard} deliveries, #{each(@lost)} for each client"]
  end

  private

  def times(what) = @times.fetch(what, [])
  def each(count) = (count.to_f / @clients).round(2)

  def most_within(seconds)
    again = times("connected")
    again.each_index.map do |index|
      (again.bsearch_index { |at| at > again[index] + seconds } || again.length) - index
    end.max
  end
end

if $PROGRAM_NAME == __FILE__
  ARGV.delete("--")
  options = ARGV.drop_while { |argument| !argument.start_with?("-") }
  numbers = ARGV.take_while { |argument| !argument.start_with?("-") }.map { |argument| Integer(argument) }
  wait = ENV["CABLE_WAIT"]&.then { |text| Range.new(*text.split("..").map { |number| Float(number) }) }
  Cable.new(numbers[0] || 5000, numbers[1] || 4, options, is_tls: ENV.key?("CABLE_TLS"), wait: wait).run
end
