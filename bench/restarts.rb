#!/usr/bin/env ruby
# frozen_string_literal: true

# Requests that fail while Redmine is restarted, under each server in the way that its manual names:
#
#     ruby bench/restarts.rb [RESTARTS] [FOLDER]
#
# Needs the packages redmine-sqlite, puma, passenger, unicorn and nginx, and a built Highball (HIGHBALL_BIN). CLIENTS
# send requests, each with a new connection, while the server restarts RESTARTS (10) times. Writes restarts.json to
# FOLDER; bench/chart.rb draws it.

require "json"
require "net/http"
require "tmpdir"
require_relative "../test/support/free_port"
require_relative "../test/support/highball_server"

# One server with an application, as bench/schemes starts it, but for what a restart without downtime needs.
class Deployment
  APP = "/usr/share/redmine"
  SITE = File.expand_path("apps/redmine", __dir__)
  ENVIRONMENT = HighballServer::ENVIRONMENT.merge(
    "RAILS_ENV" => "production", "X_DEBIAN_SITEID" => "#{'../' * 8}#{SITE.delete_prefix('/')}/site"
  ).freeze
  WORKERS = 4
  PATH = "/issues/1"

  attr_reader :port

  def self.open(...)
    deployment = new(...)
    deployment.start
    yield deployment
  ensure
    deployment&.stop
  end

  def initialize(port, folder)
    @port = port
    @folder = folder
    @pids = []
  end

  def stop
    @pids.reverse_each { |pid| ProcessFacts.tree(pid).each { |one| HighballServer.kill(one) } }
  end

  # Waits until it answers.
  def wait
    Deadline.wait("an answer of #{self.class}:\n#{File.read(log)}", within: 90) { answers? }
  end

  private

  def log = File.join(@folder, "log")
  def path(name) = File.join(@folder, name)

  def run(*command)
    @pids << Process.spawn(ENVIRONMENT, *command, chdir: APP, in: File::NULL, %i[out err] => [log, "a"], pgroup: true)
    Process.detach(@pids.last)
  end

  def order(*command, **variables)
    system(ENVIRONMENT.merge(variables.transform_keys(&:to_s)), *command, chdir: APP, %i[out err] => [log, "a"]) or
      abort "#{command.join(' ')} failed:\n#{File.read(log)}"
  end

  def answers?
    Clients.ask(port) == "200"
  rescue *Clients::BROKEN
    false
  end

  # The workers' pids: those of the children of a process that have this in their title.
  def workers(pid, title) = ProcessFacts.tree(pid).select { |one| ProcessFacts.command_line(one).include?(title) }

  # Waits until every worker that the block lists is another one, and as many serve as before.
  def wait_for_others(before)
    Deadline.wait("new workers of #{self.class}", within: 120) do
      now = yield
      now.size >= WORKERS && !now.intersect?(before)
    end
  end
end

# A phased restart, which needs an application that is not preloaded.
class Puma < Deployment
  TITLE = "Puma, phased restart"
  VERSION = %w[puma --version].freeze

  def start
    run("puma", "--no-config", "--quiet", "--environment", "production", "--workers", WORKERS.to_s, "--threads", "1:1",
        "--bind", "tcp://127.0.0.1:#{port}", "#{APP}/config.ru")
    wait
  end

  def restart
    before = workers(@pids.last, "cluster worker")
    Process.kill(:USR1, @pids.last)
    wait_for_others(before) { workers(@pids.last, "cluster worker") }
  end
end

# Its free edition restarts all processes of an application at once, and keeps requests meanwhile.
class Passenger < Deployment
  TITLE = "Passenger"
  VERSION = %w[passenger --version].freeze

  def start
    Dir.mkdir(path("tmp"))
    run("passenger", "start", APP, "--engine", "builtin", "--environment", "production", "--address", "127.0.0.1",
        "--port", port.to_s, "--max-pool-size", WORKERS.to_s, "--min-instances", WORKERS.to_s,
        "--max-request-queue-size", "4096", "--no-install-runtime", "--disable-security-update-check",
        "--disable-anonymous-telemetry", "--log-file", path("passenger.log"), "--pid-file", path("passenger.pid"),
        "--instance-registry-dir", path("tmp"))
    wait
  end

  def restart
    before = app_pids
    order("passenger-config", "restart-app", APP, **instance)
    wait_for_others(before) { app_pids }
  end

  # Its watchdog leaves the tree of the command that started it, and ends all others.
  def stop
    watchdog = File.read(path("passenger.pid")).to_i
    Process.kill(:TERM, watchdog)
    Deadline.wait("the end of Passenger", within: 60) { !ProcessFacts.alive?(watchdog) }
  ensure
    super
  end

  private

  def instance = { PASSENGER_INSTANCE_REGISTRY_DIR: path("tmp") }

  def app_pids
    status = IO.popen(instance.transform_keys(&:to_s), "passenger-status", err: File::NULL, &:read)
    status.scan(/\* PID: (\d+)/).flatten.map(&:to_i)
  end
end

# A new master beside the old one (USR2), which then quits; nginx in front.
class Unicorn < Deployment
  TITLE = "nginx → Unicorn"
  VERSION = %w[unicorn -v].freeze
  # Its new master must not run within the application's bundle, which has no Unicorn.
  CONFIGURATION = <<~RUBY.freeze
    worker_processes #{WORKERS}
    preload_app true
    pid "FOLDER/pid"
    listen "FOLDER/socket"
    before_exec { |_server| %w[RUBYOPT RUBYLIB BUNDLE_GEMFILE].each { |name| ENV.delete(name) } }
  RUBY
  NGINX = <<~NGINX
    user root root;
    daemon off;
    pid FOLDER/nginx.pid;
    error_log stderr;
    events {}
    http {
      access_log off;
      client_body_temp_path FOLDER/body;
      proxy_temp_path FOLDER/proxy;
      fastcgi_temp_path FOLDER/fastcgi;
      uwsgi_temp_path FOLDER/uwsgi;
      scgi_temp_path FOLDER/scgi;
      upstream app { server unix:FOLDER/socket max_fails=0; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://app; proxy_set_header Host $http_host; } }
    }
  NGINX

  def start
    File.write(path("unicorn.rb"), CONFIGURATION.gsub("FOLDER", @folder))
    File.write(path("nginx.conf"), NGINX.gsub("FOLDER", @folder).gsub("PORT", port.to_s))
    run("unicorn", "--env", "production", "--no-default-middleware", "--config-file", path("unicorn.rb"),
        "#{APP}/config.ru")
    run("nginx", "-e", "stderr", "-p", @folder, "-c", path("nginx.conf"))
    wait
  end

  def restart
    before = workers(master, "worker")
    old = master
    Process.kill(:USR2, old)
    Deadline.wait("a new master of Unicorn", within: 120) do
      File.exist?(path("pid")) && master != old && workers(master, "worker").size >= WORKERS
    end
    @pids << master
    Process.kill(:QUIT, old)
    wait_for_others(before) { @pids.flat_map { |pid| workers(pid, "worker[") } }
  end

  private

  def master = File.read(path("pid")).to_i
end

# The server of this tree.
class Highball < Deployment
  TITLE = "Highball"
  VERSION = [HighballServer::BINARY, "--version"].freeze

  def start
    run(HighballServer::BINARY, "serve", "--environment", "production", "--workers", WORKERS.to_s, "--threads", "1",
        "--bind", "127.0.0.1:#{port}", APP)
    wait
  end

  def restart = order(HighballServer::BINARY, "restart", "--port", port.to_s)
end

# Clients that send one request after the other, each by a new connection.
class Clients
  COUNT = 8
  WITHIN = 30 # seconds; who waits longer has no answer
  BROKEN = [SystemCallError, IOError, Timeout::Error, Net::HTTPBadResponse, Net::ProtocolError].freeze

  # The status that a request gets. It is sent once.
  def self.ask(port)
    http = Net::HTTP.new("127.0.0.1", port)
    http.max_retries = 0
    http.read_timeout = WITHIN
    http.start { http.get(Deployment::PATH, { "Connection" => "close" }).code }
  end

  def initialize(port)
    @port = port
    @seconds = Queue.new
    @failures = Queue.new
  end

  def during
    going = true
    threads = Array.new(COUNT) { Thread.new { request while going } }
    yield
  ensure
    going = false
    threads.each(&:join)
  end

  def figures
    seconds = Array.new(@seconds.size) { @seconds.pop }
    failures = Array.new(@failures.size) { @failures.pop }
    { "requests" => seconds.size + failures.size, "failed" => failures.size, "failures" => failures.tally,
      "slowest_ms" => (seconds.max.to_f * 1000).round }
  end

  private

  def request
    began = Deadline.now
    status = Clients.ask(@port)
    return @failures << status unless status == "200"

    @seconds << (Deadline.now - began)
  rescue *BROKEN => e
    @failures << e.class.name
    sleep 0.01
  end
end

# All of them, one after the other.
class Restarts
  SERVERS = [Puma, Passenger, Unicorn, Highball].freeze
  PAUSE = 1 # seconds of load before and after

  def initialize(restarts)
    @restarts = restarts
  end

  def run
    system("ruby", "#{Deployment::SITE}/prepare") or abort "Redmine's site cannot be prepared"
    { "measured" => Time.now.utc.strftime("%Y-%m-%d %H:%M UTC"), "application" => "Redmine",
      "clients" => Clients::COUNT, "restarts" => @restarts, "servers" => SERVERS.map { |kind| measure(kind) } }
  end

  private

  def measure(kind)
    Dir.mktmpdir("highball-restarts") do |folder|
      kind.open(FreePort.free_port, folder) do |deployment|
        clients = Clients.new(deployment.port)
        clients.during { restart(deployment) }
        figures = { "server" => kind::TITLE, "version" => version(kind), **clients.figures }
        figures.tap { |all| puts all.to_json }
      end
    end
  end

  def restart(deployment)
    sleep PAUSE
    @restarts.times do
      deployment.restart
      sleep PAUSE
    end
  end

  def version(kind) = IO.popen(kind::VERSION, err: %i[child out], &:read)[/\d+\.\d+[\d.]*/]
end

folder = ARGV.fetch(1, __dir__)
File.write(File.join(folder, "restarts.json"),
           "#{JSON.pretty_generate(Restarts.new(Integer(ARGV.fetch(0, '10'))).run)}\n")
