# frozen_string_literal: true

# Many clients of Action Cable: the server's memory for each of them, when broadcasts arrive, how long other requests
# take beside them, and what each operation closes, loses or repeats.
#
#     ruby bench/cable.rb [CLIENTS [WORKERS]] [-- OPTIONS OF HIGHBALL]
#
# CABLE_STEPS="restart*10 refork*10 kill upgrade" has ten rolling restarts, ten reforks, the death of each worker and a
# hot restart (default: restart). CABLE_EVERY=0.05 is the time between two broadcasts, in seconds. With
# CABLE_ADAPTER=highball, the server holds the WebSockets, and passes broadcasts on; the default is a Redis. CABLE_TLS=1
# measures over TLS.
#
# Much depends on how long clients wait until they connect again: these do it at once, which is the worst case for the
# server. `CABLE_WAIT=6..12` has them wait between 6 and 12 seconds.
#
# The clients have the last CPU, and the server the others: else the kernel has a client read on the CPU of the server,
# which then waits.
#
# Needs Debian's packages ruby-rails and redis-server, and the clients: bin/setup --bench.

require_relative "beside"
require_relative "../test/support/highball_server"
require_relative "../test/support/http_connection"
require_relative "../test/support/redis_server"
require "English"
require "etc"
require "io/wait"
require "json"
require "openssl"
require "socket"
require "tmpdir"

ENV["HIGHBALL_CONTROL"] = HighballServer::CONTROL
$LOAD_PATH.unshift(File.join(HighballServer::ROOT, "lib"))
require "highball"

# A Redis that keeps nothing, for broadcasts between workers.
class CableRedis < RedisServer
  def initialize
    super(durable: false)
    @socket = TCPSocket.new(address, port)
  end

  def config = "  adapter: redis\n  url: redis://127.0.0.1:#{port}/1\n  channel_prefix: blog\n"

  # As the adapter does.
  def publish(text)
    words = ["PUBLISH", "blog:room", text]
    @socket.write("*3\r\n#{words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join}")
    @socket.gets
  end
end

# Highball in its place.
class CableHub
  def config = "  adapter: highball\n"
  def publish(text) = Highball.publish("cable:room", text)
  def finish = nil
end

# The clients, in a process that takes orders: bench/src/bin/highball-cable-clients.rs.
class CableClients
  PROGRAM = File.join(File.dirname(HighballServer::BINARY), "highball-cable-clients")
  LAST_CPU = (Etc.nprocessors - 1).to_s

  def initialize(port, is_tls, wait)
    words = ["taskset", "--cpu-list", LAST_CPU, PROGRAM, port.to_s, *("--tls" if is_tls), *(["--wait", wait] if wait)]
    @process = IO.popen(words, "r+")
  end

  def pid = @process.pid
  def open(count) = answer("open #{count}")
  def counts = answer("count")
  def delays = answer("delays")
  def events = answer("events")[:events]
  def finish = @process.close

  private

  def answer(order)
    @process.puts(order)
    JSON.parse(@process.gets, symbolize_names: true)
  end
end

# The measurement.
class Cable
  include Beside

  FIRST = 0.2 # of all clients, before memory is looked at: what all share is there then
  EVERY = Float(ENV.fetch("CABLE_EVERY", 2)) # seconds between two broadcasts
  STEPS = ENV.fetch("CABLE_STEPS", "restart").split.flat_map do |text|
    name, times = text.split("*")
    [name] * Integer(times || 1)
  end
  HELLO = "/echo" # another action of the application
  QUIET = 10 # seconds in which nothing happens but broadcasts
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
    @bus&.finish
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
    leave_last_cpu
    yield
  ensure
    puts @server.log if $ERROR_INFO && @server
    @server&.finish
  end

  # (Processes that start later inherit it.)
  def leave_last_cpu
    return if Etc.nprocessors == 1

    ProcessFacts.tree(@server.pid).each do |pid|
      system("taskset", "--all-tasks", "--cpu-list", "--pid", "0-#{Etc.nprocessors - 2}", pid.to_s, out: File::NULL,
                                                                                                    exception: true)
    end
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
    alone = percentiles(hello(3, HELLO))
    @all = CableClients.new(@tls_port || @server.port, @is_tls, @wait)
    open_clients(first = (@clients * FIRST).to_i)
    before = memories
    open_clients(@clients)
    report_memory(before, memories, @open - first)
    broadcasting do
      quiet(alone)
      STEPS.each_with_index { |step, index| during("#{index + 1}. #{step}") { send(step) } }
    end
    sleep 1
    puts "broadcasts: #{@sent}; deliveries: #{@all.counts.slice(:heard, :lost, :repeated)}"
  ensure
    @all&.finish
  end

  def open_clients(total)
    @all.open(total - (@open || 0))
    @open = total
    Deadline.wait("#{total} clients", within: 180) { @all.counts[:subscribed] >= total }
    sleep SETTLES
  end

  # Bytes: of the server's process, private dirty and proportional; and of all processes.
  def memories
    server = [@server.server_pid]
    [ProcessFacts.private_dirty_bytes(server), ProcessFacts.proportional_bytes(server), memory * 1024]
  end

  def report_memory(before, after, more)
    each = before.zip(after).map { |from, to| ((to - from) / more.to_f / 1024).round(2) }
    puts "memory for each idle WebSocket, KiB: #{each[0]} private and #{each[1]} PSS of the server, " \
         "#{each[2]} PSS of all processes"
    puts "WebSockets by worker: #{by_worker.join(', ')}"
  end

  # Sockets of the workers.
  def by_worker
    @server.worker_pids.map do |pid|
      Dir.glob("/proc/#{pid}/fd/*").count { |path| File.socket?(path) }
    end
  end

  # Another process broadcasts, so that nothing here delays it.
  def broadcasting
    theirs, ours = UNIXSocket.pair
    pid = fork do
      ours.close
      theirs.puts(broadcast(theirs))
      exit!(0)
    end
    theirs.close
    sleep 2
    yield
  ensure
    ours&.close_write
    @sent = ours&.read.to_i
    Process.wait(pid) if pid
  end

  # Broadcasts until the other end says nothing more. Returns how often.
  def broadcast(other)
    number = 0
    due = now
    until other.wait_readable([(due += EVERY) - now, 0].max)
      @bus.publish(JSON.generate(n: number += 1, at: (now * 1_000_000).to_i, text: "news"))
    end
    number
  end

  def quiet(alone)
    @all.delays
    before = cpu_times
    sleep QUIET
    delays = @all.delays
    server, clients = cpu_times.zip(before).map { |to, from| ((to - from) * 1e6 / delays[:count]).round(1) }
    puts "a broadcast until its clients have it: #{in_words(delays)}"
    puts "CPU time of a delivery, us: #{server} of the server, #{clients} of the clients"
    beside = percentiles(hello(QUIET, HELLO))
    puts "  with other requests beside: #{in_words(@all.delays)}"
    puts "another request, ms (median, p99, longest): #{alone.join(', ')} alone; #{beside.join(', ')} beside"
  end

  def cpu_times = [@server.server_pid, @all.pid].map { |pid| ProcessFacts.cpu_seconds([pid]) }

  def in_words(delays)
    median, p99, longest = delays.values_at(:p50, :p99, :longest).map { |ms| ms&.round(1) }
    "#{median} ms (median), #{p99} ms (p99), #{longest} ms (the longest of #{delays[:count]})"
  end

  def during(step)
    before = @all.counts
    from = now
    @all.delays
    yield
    took = now - from
    Deadline.wait("the clients after #{step}", within: BACK_WITHIN) do
      sleep 0.5
      served? && @all.counts[:subscribed] == @open
    end
    sleep EVERY * 1.5 # a broadcast shows what was lost
    summary = CableSummary.new(@all.events, from, before, @all.counts)
    puts "#{step}: #{took.round(1)} s; #{in_words(@all.delays)}"
    puts(summary.lines.map { |line| "  #{line}" })
  end

  def served?
    states = @server.status["workers"].map { |worker| worker["state"] }
    states == ["serving"] * @workers
  end

  # --- Steps ---

  def restart = command("restart")
  def refork = command("refork")

  def upgrade
    finished = -> { @server.log.scan("finished the remaining requests").length }
    before = finished.call
    command("upgrade")
    Deadline.wait("the end of the old process", within: BACK_WITHIN) { finished.call > before }
  end

  def kill
    @server.worker_pids.each do |pid|
      Process.kill(:KILL, pid)
      Deadline.wait("the next worker", within: 60) { sleep(0.1) && served? && !@server.worker_pids.include?(pid) }
    end
  end

  def command(name)
    output, status = HighballServer.run(name, *@server.which, within: BACK_WITHIN)
    raise output unless status.success?
  end
end

# What has happened to the clients since a moment.
class CableSummary
  def initialize(events, from, before, after)
    @clients = after[:subscribed]
    @difference = after.to_h { |name, count| [name, count - before[name]] }
    events = events.select { |_, at, _| at > from }
    @codes = events.filter_map { |what, _, code| code&.to_i if what == "closed" }.tally
    @without_ms = events.filter_map { |what, _, ms| ms if what == "subscribed" }.sort
    @times = events.group_by(&:first).transform_values { |some| some.map { |_, at, _| at - from }.sort }
  end

  def lines
    [*(ended_lines if times("ended").any?),
     "closed: #{times('ended').length}; lost: #{@difference[:lost]}, repeated: #{@difference[:repeated]}, " \
     "of #{@difference[:lost] + @difference[:heard]} deliveries"]
  end

  private

  def ended_lines
    ["all clients were back after #{times('subscribed').last.to_f.round(1)} s",
     "#{each(times('ended').length)} connections ended for each client; by a close frame: #{@codes}; " \
     "refused (503): #{times('refused').length}",
     "most connections again: #{most_within(1).to_i} in a second, #{most_within(0.1).to_i} in a tenth",
     "time without a subscription: #{@without_ms[@without_ms.length / 2].to_f.round} ms (median), " \
     "#{@without_ms.last.to_f.round} ms (the longest); lost: #{each(@difference[:lost])} for each client"]
  end

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
  options_of_clients = { is_tls: ENV.key?("CABLE_TLS"), wait: ENV.fetch("CABLE_WAIT", nil) }
  Cable.new(numbers[0] || 5000, numbers[1] || 4, options, **options_of_clients).run
end
