# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "securerandom"
require "tmpdir"
require_relative "deadline"
require_relative "http_connection"
require_relative "own_processes"
require_relative "process_facts"

# A running Highball: the real binary on an application folder, with a free port and a temporary folder.
class HighballServer
  # It ended, or did not answer, before it served.
  class NotServing < StandardError; end

  ROOT = File.expand_path("../..", __dir__)
  BUILT = File.join(ENV.fetch("CARGO_TARGET_DIR", "target"), ENV.fetch("HIGHBALL_PROFILE", "release"), "highball")
  BINARY = File.expand_path(ENV.fetch("HIGHBALL_BIN", BUILT), ROOT)
  APPS = File.join(ROOT, "test/apps")
  EXAMPLES = File.join(ROOT, "examples")
  MARK = "HIGHBALL_TEST_SERVER"
  SERVES_WITHIN = 60 # seconds
  LOG_WRITTEN_WITHIN = 5 # seconds
  STOPS_WITHIN = 40
  # Variables of the caller's shell that a server under test must not see.
  FOREIGN = %w[PORT BINDING PIDFILE WEB_CONCURRENCY RAILS_MAX_THREADS RAILS_ENV RACK_ENV APP_ENV RUBYOPT
               BUNDLE_GEMFILE RAILS_LOG_TO_STDOUT DATABASE_URL OTEL_EXPORTER_OTLP_ENDPOINT
               OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_TRACES_SAMPLER OTEL_SDK_DISABLED].freeze
  # The folder for control sockets. Other tests, which run at the same time, have other folders.
  CONTROL = Dir.mktmpdir("highball-control")
  if defined?(Minitest)
    Minitest.after_run { FileUtils.rm_rf(CONTROL) }
  else
    at_exit { FileUtils.rm_rf(CONTROL) }
  end
  # The binary may lie anywhere; the Ruby code and the benchmark's data are this tree's.
  ENVIRONMENT = FOREIGN.to_h { |name| [name, nil] }.merge(
    "HIGHBALL_LIB" => ENV.fetch("HIGHBALL_LIB", File.join(ROOT, "lib")), "HIGHBALL_BINARY" => BINARY,
    "CACHE_DIRECTORY" => File::NULL, # no process that writes the boot cache is among the ones tests look at
    "HIGHBALL_REST_MOLD_AFTER" => "none", # tests look at molds at any time, however long they take
    "HIGHBALL_BENCH" => File.join(ROOT, "bench"), "HIGHBALL_CONTROL" => CONTROL,
    "XDG_STATE_HOME" => File.join(CONTROL, "state"), "XDG_DATA_HOME" => File.join(CONTROL, "data")
  ).freeze

  # Starts a server and waits until it has answered a request for `ready`.
  # `bind` is nil for a free TCP port, or the path of a Unix socket; another one beside it is `second_socket`.
  # `command` replaces the whole command line. Every connection begins with `preface`, as a proxy's does.
  def self.start(app, *options, ready: "/", within: SERVES_WITHIN, **settings)
    server = new(app, *options, **settings)
    server.wait_until_serving(ready, within: within)
    server
  rescue StandardError
    server&.finish
    raise
  end

  # Runs the binary to its end: [output, Process::Status].
  def self.run(*arguments, env: {}, within: 30, directory: ROOT)
    Dir.mktmpdir("highball-run") do |dir|
      log = File.join(dir, "log")
      pid = Process.spawn(ENVIRONMENT.merge(env), BINARY, *arguments,
                          chdir: directory, in: File::NULL, %i[out err] => log)
      ended = Process.detach(pid)
      unless ended.join(within)
        ProcessFacts.tree(pid).each { |one| kill(one) }
        raise Deadline::Missed, "highball #{arguments.join(' ')} did not end within #{within} s:\n#{File.read(log)}"
      end
      [File.read(log), ended.value]
    end
  end

  def self.kill(pid, signal = "KILL")
    Process.kill(signal, pid)
  rescue Errno::ESRCH
    nil
  end

  attr_reader :pid, :dir, :app, :socket_path, :second_socket

  def initialize(app, *options, environment: "production", workers: 1, threads: 3, bind: nil, second_socket: nil,
                 env: {}, command: nil, fds: {}, preface: "")
    @app = resolve(app)
    @preface = preface
    @dir = Dir.mktmpdir("highball-e2e")
    @socket_path = bind
    @second_socket = second_socket
    @mark = SecureRandom.hex(8)
    address = bind ? ["-b", "unix:#{bind}"] : ["-b", "127.0.0.1", "-p", "0"]
    address += ["-b", "unix:#{second_socket}"] if second_socket
    command ||= [BINARY, "serve", *address, "-e", environment, "-w", workers.to_s, "-t", threads.to_s, *options, @app]
    @pid = Process.spawn(ENVIRONMENT.merge(MARK => @mark).merge(env), *command,
                         chdir: @app, in: File::NULL, %i[out err] => log_path, pgroup: true, **fds)
    @ended = Process.detach(@pid)
    end_with_this_process
  end

  # All that was logged by now: a thread writes it, and sleeps when it has.
  def log
    ends_at = Deadline.now + LOG_WRITTEN_WITHIN
    sleep 0.002 while writes_log? && Deadline.now < ends_at
    File.read(log_path, encoding: "UTF-8").scrub
  end

  # The TCP port, from the log. (An authority for certificates may report to what it could not "dial tcp".)
  def port
    @port ||= log[%r{(?:http://|tcp://|(?<!dial tcp )\b)127\.0\.0\.1:([1-9]\d*)}, 1]&.to_i
  end

  # The link from the terminal, which developers open in a browser, with another host or path.
  def url(path = "/", host: "127.0.0.1")
    address = "http://#{host}:#{port}#{path}"
    key = link_key or return address

    "#{address}#{path.include?('?') ? '&' : '?'}highball=#{key}"
  end

  # The key of the links that the log shows, in development.
  def link_key
    @link_key ||= log[/\?highball=(\h+)/, 1]
  end

  def wait_until_serving(ready = "/", within: SERVES_WITHIN)
    Deadline.wait("an answer from the server", within: within) do
      raise NotServing, "highball ended with #{@ended.value}:\n#{log}" unless running?

      answers?(ready)
    end
  rescue Deadline::Missed
    raise NotServing, "highball did not answer within #{within} s; its log:\n#{log}"
  end

  def running?
    @ended.alive?
  end

  # --- talking to it

  def connect(&block)
    connection = stranger
    connection.cookies = method(:cookie_for)
    connection.use(&block)
  end

  # A connection of a client that has not opened the link.
  def stranger
    connection = socket_path ? HttpConnection.unix(socket_path) : HttpConnection.tcp(port)
    connection.write(@preface)
  end

  def request(method, target, headers = {}, body = nil, **options)
    connect { |connection| connection.request(method, target, headers, body, **options) }
  end

  def get(target, headers = {}, **options)
    request("GET", target, headers, **options)
  end

  # Sends the bytes and returns every answer until the server closes.
  def exchange(bytes, within: HttpConnection::WITHIN)
    connect { |connection| connection.write(bytes).read_all(within: within) }
  end

  # The status of highball, merged with that of its only application.
  def status
    now = full_status
    now.fetch("apps").one? ? now["apps"].first.merge(now) : now
  end

  # `highball status --json`.
  def full_status
    output, error, ended = Open3.capture3(ENVIRONMENT, BINARY, "status", "--json", *which)
    raise "highball status: #{ended}\n#{output}#{error}" unless ended.success?

    JSON.parse(output)
  end

  def worker_pids
    status.fetch("workers").map { |worker| worker.fetch("pid") }.compact
  end

  def mold_pid
    status.dig("mold", "pid")
  end

  # The arguments by which a command finds this instance among several.
  def which
    socket_path ? [@app] : ["--port", port.to_s]
  end

  # The process that reads clients' requests. If there is a spawner, it is not the process that was started.
  # `of`: the process that was started, by default or for a hot restart.
  def server_pid(of = pid) = OwnProcesses.server(of)

  # The processes of Highball itself: one, or a spawner with its server and openers.
  def own_pids(of = pid) = OwnProcesses.of(of)

  # Whether all workers serve, and there are no unexpected processes: only this one, the serving process (another, after
  # a hot restart), its mold and its workers.
  def settled?
    now = status
    serving = now.fetch("workers").select { |worker| worker["state"] == "serving" }
    due = own_pids | own_pids(now["pid"]) | [now.dig("mold", "pid"), *serving.map { |worker| worker["pid"] }].compact
    serving.length == now.fetch("workers_wanted") && pids.sort == due.sort
  end

  # Whether all workers of a large application serve that stay: the first one is forked early, and replaced.
  def complete? = settled? && status["workers"].none? { |worker| worker["worker"] == 1 }

  # --- resources

  def pids
    ProcessFacts.in_group(@pid) | ProcessFacts.with_environment(MARK, @mark)
  end

  # Private dirty memory, resident memory files and spool files in memory, together.
  def memory_bytes
    all = pids
    ProcessFacts.private_dirty_bytes(all) + ProcessFacts.memfd_bytes(all) + ProcessFacts.tmpfs_spool_bytes(all)
  end

  # Open files of the process that serves clients.
  def open_files = ProcessFacts.open_file_count(OwnProcesses.server(pid))

  # The most that `memory_bytes` reached while the block ran.
  def peak_memory_during
    peak = memory_bytes
    done = false
    sampler = Thread.new { peak = [peak, memory_bytes].max until done }
    yield
    peak
  ensure
    done = true
    sampler.join
  end

  # --- ending it

  def signal(name)
    Process.kill(name, pid)
  end

  # Waits until it has ended: its Process::Status.
  def wait(within: STOPS_WITHIN)
    raise Deadline::Missed, "highball did not end within #{within} s; its log:\n#{log}" unless @ended.join(within)

    @ended.value
  end

  def stop(signal_name = "TERM", within: STOPS_WITHIN)
    signal(signal_name)
    wait(within: within)
  end

  # Ends whatever is left, frees the folder, and returns the pids that a stopped server left behind.
  def finish
    stop if running?
    orphans
  rescue Errno::ESRCH # it has ended at this very moment
    orphans
  ensure
    abandon
  end

  # Processes that outlived the server. They get a moment, because they notice its end by a closed socket.
  def orphans(within: 3)
    Deadline.wait("end of all processes", within: within) { pids.empty? }
    []
  rescue Deadline::Missed
    pids
  end

  private

  # As a developer's browser: opens the link at a host before the first request there, and keeps the cookie.
  def cookie_for(host)
    @cookies ||= {}
    name = host.sub(/:\d+\z/, "")
    return @cookies[name] if @cookies.key?(name) || !link_key

    answer = stranger.use { |connection| connection.get("/?highball=#{link_key}", { "Host" => host }) }
    @cookies[name] = answer["set-cookie"]&.slice(/\A[^;]+/)
  end

  # A run of tests that is interrupted ends its servers as well. (Minitest runs tests in an exit handler:
  # only handlers registered within one come after it.)
  def end_with_this_process
    owner = Process.pid
    at_exit { abandon if Process.pid == owner && !@abandoned }
  end

  # Ends every process of it at once, and frees its folder.
  def abandon
    pids.each { |one| self.class.kill(one) }
    @ended.join(STOPS_WITHIN)
    FileUtils.rm_rf(dir)
    @abandoned = true
  end

  def resolve(app)
    return app if app.start_with?("/")

    [APPS, EXAMPLES].map { |folder| File.join(folder, app) }.find { |path| File.exist?(path) } || app
  end

  def log_path
    File.join(dir, "log")
  end

  # With a spawner, both its process and the server's, a child, have such a thread.
  def writes_log?
    children = Dir["/proc/#{@pid}/task/*/children"].flat_map { |file| File.read(file).split }
    [@pid, *children].flat_map { |pid| Dir["/proc/#{pid}/task/*"] }.any? do |thread|
      File.read("#{thread}/comm") == "log\n" && File.read("#{thread}/stat")[/\) (\w)/, 1] != "S"
    end
  rescue Errno::ENOENT, Errno::ESRCH
    false # one has just ended
  end

  def answers?(ready)
    return false unless socket_path ? File.socket?(socket_path) : port

    answer = connect { |connection| connection.get(ready, { "Connection" => "close" }, within: SERVES_WITHIN) }
    answer && answer.status < 500
  rescue SystemCallError, EOFError, HttpConnection::TimedOut
    false
  end
end
