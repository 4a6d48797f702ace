# frozen_string_literal: true

require_relative "http2_load"
require_relative "keep_alive_load"
require_relative "operations"
require_relative "process_facts"

# One kind of operation, again and again, on a server with many clients: their failures, and whether the server's state
# is the same afterwards.
class SoakRun
  CLIENTS = 50
  # Beside them, if the server has TLS; each has several requests under way.
  HTTP2_CLIENTS = 2
  # One client of five sends without pauses; the others send about twice a second, and at least once.
  PAUSES = [0.01..0.05, *Array.new(4) { 0.1..0.9 }].freeze
  SETTLES_WITHIN = 60 # seconds
  LOOK_EVERY = 0.1 # seconds
  MIB = 1024 * 1024
  MORE_MIB = 8 # that `highball` may hold afterwards: what malloc keeps, and no leak

  # The state of `highball` itself: its open files, and its private dirty memory. The baseline is taken after the first
  # operation, because a process that has taken over from another has more sockets than the first one.
  Size = Struct.new(:files, :mib)

  attr_reader :load, :http2, :seconds, :before, :after, :problems

  # `server` serves `app`, with all of its workers. `https` connects over TLS: [the socket of a client that offers these
  # protocols], as ServesTls#tls_socket does; nil: the server has no such address.
  def initialize(server, app, kind, https: nil)
    @https = https
    @server = server
    @app = app
    @kind = kind
    @seconds = [] # that each operation took
    @problems = [] # beside those of clients
  end

  # Runs the operation this number of times, and yields the number of each complete one.
  def perform(times)
    operation = @kind.new(@server, @app)
    settle("the first processes") { @server.settled? }
    @load = KeepAliveLoad.new(@server, clients: CLIENTS, questions: @app.questions(@server), pauses: PAUSES,
                                       allowed: @kind.allowed, connects: connects)
    @http2 = Http2Load.new(HTTP2_CLIENTS, "/") { Http2Client.new(@https.call(["h2"])) } if @https
    times.times do |index|
      @seconds << time { operation.perform }
      @before ||= size
      yield index + 1 if block_given?
    end
    look_whether_all_is_as_before
    @http2&.more
    @load.stop
    @http2&.stop
  rescue Operations::Failed, Deadline::Missed => e
    @problems << e.message
  ensure
    @load&.kill
    @http2&.kill
  end

  # The first failures of clients, and the first differences to the state before, as text.
  def failures
    problems + [load, http2].compact.flat_map { |clients| clients.failures.map(&:to_s) }
  end

  private

  # One client of five uses the Unix socket, if there is one, and two use TLS.
  def connects
    tcp = -> { @server.connect }
    tls = @https ? -> { HttpConnection.new(@https.call(nil)) } : tcp
    path = @server.second_socket
    [tcp, tls, tcp, tls, path ? -> { HttpConnection.unix(path) } : tcp]
  end

  def time
    began = Deadline.now
    yield
    Deadline.now - began
  end

  # Measured while all clients are connected. Takes the minimum of several measurements, because briefly open files are
  # no leak.
  def size
    files = Array.new(3) do
      @load.more(1)
      open_files
    end
    Size.new(files.min, ProcessFacts.private_dirty_bytes(@server.own_pids(serving_pid)) / MIB.to_f)
  end

  # The process `highball` that serves: after a hot restart, not the first one.
  def serving_pid = @server.status.fetch("pid")

  # Includes the first process's, which is the PID proxy for the serving one.
  def open_files
    (@server.own_pids | @server.own_pids(serving_pid)).sum { |pid| ProcessFacts.open_file_count(pid) }
  end

  def look_whether_all_is_as_before
    @load.more(3)
    settle("the processes that there should be, and no others") { @server.settled? }
    settle("the #{before.files} open files that `highball` had before") { open_files <= before.files }
    @after = size
    if after.mib > before.mib + MORE_MIB
      problems << "`highball` has #{after.mib.round(1)} MiB of private dirty memory, and had #{before.mib.round(1)}"
    end
    stale = load.versions_met.map(&:last).tally.except(@app.version)
    problems << "clients were answered last by versions #{stale}, and not by #{@app.version}" unless stale.empty?
  end

  def settle(what, &)
    Deadline.wait(what, within: SETTLES_WITHIN, every: LOOK_EVERY, &)
  rescue Deadline::Missed => e
    problems << "#{e.message}; the processes are #{@server.pids.sort}; #{open_files} files are open"
  end
end
