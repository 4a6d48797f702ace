# frozen_string_literal: true

require "net/http"
require "tmpdir"
require_relative "../test/support/free_port"
require_relative "../test/support/highball_server"

# A server with an application, as bench/schemes starts it, but for what a restart without downtime needs.
class Deployment
  # An application: its folder, the environment of its processes, what it has of them, and a path that it answers.
  Application = Struct.new(:folder, :environment, :workers, :threads, :path, keyword_init: true) do
    def initialize(**)
      super
      self.environment = HighballServer::ENVIRONMENT.merge("RAILS_ENV" => "production", **environment)
    end
  end

  WITHIN = 30 # seconds; who waits longer has no answer
  BROKEN = [SystemCallError, IOError, Timeout::Error, Net::HTTPBadResponse, Net::ProtocolError].freeze

  attr_reader :port

  # Starts one in a folder for what it writes, and waits until it answers.
  def self.open(application)
    Dir.mktmpdir("highball-bench") do |folder|
      deployment = new(application, folder)
      deployment.start
      Deadline.wait("an answer of #{name}:\n#{deployment.log}", within: 90) { deployment.answers? }
      yield deployment
    ensure
      deployment&.stop
    end
  end

  def initialize(application, folder)
    @application = application
    @folder = folder
    @port = FreePort.free_port
    @pids = []
  end

  def stop = processes.reverse_each { |pid| HighballServer.kill(pid) }

  # All that were started.
  def processes = @pids.flat_map { |pid| ProcessFacts.tree(pid) }

  # The status that a request for its path gets. It is sent once, by a new connection.
  def ask
    http = Net::HTTP.new("127.0.0.1", port)
    http.max_retries = 0
    http.read_timeout = WITHIN
    http.start { http.get(@application.path, { "Connection" => "close" }).code }
  end

  def answers?
    ask == "200"
  rescue *BROKEN
    false
  end

  def log = File.read(path("log"))

  private

  def workers = @application.workers
  def path(name) = File.join(@folder, name)
  def to_log = { chdir: @application.folder, %i[out err] => [path("log"), "a"] }

  def run(*command)
    @pids << Process.spawn(@application.environment, *command, in: File::NULL, pgroup: true, **to_log)
    Process.detach(@pids.last)
  end

  def order(*command, **variables)
    system(@application.environment.merge(variables.transform_keys(&:to_s)), *command, **to_log) or
      abort "#{command.join(' ')} failed:\n#{log}"
  end
end

# A phased restart, which needs an application that is not preloaded.
class Puma < Deployment
  TITLE = "Puma, phased restart"
  VERSION = %w[puma --version].freeze

  def start(*options)
    threads = @application.threads
    run("puma", *options, "--no-config", "--environment", "production", "--workers", workers.to_s,
        "--threads", "#{threads}:#{threads}", "--bind", "tcp://127.0.0.1:#{port}", "#{@application.folder}/config.ru")
    @phase = 0
  end

  def restart
    Process.kill(:USR1, @pids.last)
    @phase += 1
    Deadline.wait("new workers of Puma", within: 120) { log.scan(/ booted .*phase: #{@phase}\b/).size == workers }
  end
end

# Servers that end their old workers themselves.
module Replacing
  private

  # Waits until every worker that the block lists is another one, and as many serve as before.
  def wait_for_others(before)
    Deadline.wait("new workers of #{self.class}", within: 120) do
      now = yield
      now.size >= workers && !now.intersect?(before)
    end
  end
end

# Its free edition restarts all processes of an application at once, and keeps requests meanwhile.
class Passenger < Deployment
  include Replacing

  TITLE = "Passenger"
  VERSION = %w[passenger --version].freeze

  def start
    Dir.mkdir(path("tmp"))
    least, most = workers.is_a?(Range) ? workers.minmax : [workers, workers]
    run("passenger", "start", @application.folder, "--engine", "builtin", "--environment", "production",
        "--address", "127.0.0.1", "--port", port.to_s, "--max-pool-size", most.to_s, "--min-instances", least.to_s,
        "--max-request-queue-size", "4096", "--no-install-runtime", "--disable-security-update-check",
        "--disable-anonymous-telemetry", "--log-file", path("passenger.log"), "--pid-file", path("passenger.pid"),
        "--instance-registry-dir", path("tmp"))
  end

  def restart
    before = app_pids
    order("passenger-config", "restart-app", @application.folder, **instance)
    wait_for_others(before) { app_pids }
  end

  # Its watchdog leaves the tree of the command that started it, and ends all others.
  def stop
    watchdogs.each do |pid|
      Process.kill(:TERM, pid)
      Deadline.wait("the end of Passenger", within: 60) { !ProcessFacts.alive?(pid) }
    end
  ensure
    super
  end

  def processes = super + watchdogs.flat_map { |pid| ProcessFacts.tree(pid) }

  private

  def watchdogs = Dir[path("passenger.pid")].map { |file| File.read(file).to_i }
  def instance = { PASSENGER_INSTANCE_REGISTRY_DIR: path("tmp") }

  def app_pids
    status = IO.popen(instance.transform_keys(&:to_s), "passenger-status", err: File::NULL, &:read)
    status.scan(/\* PID: (\d+)/).flatten.map(&:to_i)
  end
end

# The server of this tree.
class Highball < Deployment
  TITLE = "Highball"
  VERSION = [HighballServer::BINARY, "--version"].freeze

  def start
    run(HighballServer::BINARY, "serve", "--environment", "production", "--workers", workers.to_s, "--threads",
        @application.threads.to_s, "--bind", "127.0.0.1:#{port}", @application.folder)
  end

  def restart = order(HighballServer::BINARY, "restart", "--port", port.to_s)
end
