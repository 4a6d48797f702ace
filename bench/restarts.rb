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
require_relative "../test/support/web_server"
require_relative "deployment"

SITE = File.expand_path("apps/redmine", __dir__)
REDMINE = Deployment::Application.new(
  folder: "/usr/share/redmine", environment: { "X_DEBIAN_SITEID" => "#{'../' * 8}#{SITE.delete_prefix('/')}/site" },
  workers: 4, threads: 1, path: "/issues/1"
)

# A new master beside the old one (USR2), which then quits; nginx in front.
class Unicorn < Deployment
  include Replacing

  TITLE = "nginx → Unicorn"
  VERSION = %w[unicorn -v].freeze
  # Its new master must not run within the application's bundle, which has no Unicorn.
  CONFIGURATION = <<~RUBY
    worker_processes WORKERS
    preload_app true
    pid "FOLDER/pid"
    listen "FOLDER/socket"
    before_exec { |_server| %w[RUBYOPT RUBYLIB BUNDLE_GEMFILE].each { |name| ENV.delete(name) } }
  RUBY
  NGINX = <<~NGINX
    upstream app { server unix:SOCKET max_fails=0; }
    server { listen 80; location / { proxy_pass http://app; proxy_set_header Host $http_host; } }
  NGINX

  def start
    File.write(path("unicorn.rb"), CONFIGURATION.gsub("FOLDER", @folder).sub("WORKERS", workers.to_s))
    run("unicorn", "--env", "production", "--no-default-middleware", "--config-file", path("unicorn.rb"),
        "#{@application.folder}/config.ru")
    @nginx = WebServer.start("nginx", NGINX.sub("SOCKET", path("socket")))
    @port = @nginx.port
  end

  def stop
    @nginx&.finish
    super
  end

  def restart
    before = children(master)
    old = master
    Process.kill(:USR2, old)
    Deadline.wait("a new master of Unicorn", within: 120) do
      File.exist?(path("pid")) && master != old && children(master).size >= workers
    end
    @pids << master
    Process.kill(:QUIT, old)
    wait_for_others(before) { @pids.flat_map { |pid| children(pid) } }
  end

  private

  def master = File.read(path("pid")).to_i
  def children(pid) = ProcessFacts.tree(pid).select { |one| ProcessFacts.command_line(one).include?("worker[") }
end

# Clients that send one request after the other, each by a new connection.
class Clients
  COUNT = 8

  def initialize(deployment)
    @deployment = deployment
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
    status = @deployment.ask
    return @failures << status unless status == "200"

    @seconds << (Deadline.now - began)
  rescue *Deployment::BROKEN => e
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
    system("ruby", "#{SITE}/prepare") or abort "Redmine's site cannot be prepared"
    { "measured" => Time.now.utc.strftime("%Y-%m-%d %H:%M UTC"), "application" => "Redmine",
      "clients" => Clients::COUNT, "restarts" => @restarts, "servers" => SERVERS.map { |kind| measure(kind) } }
  end

  private

  def measure(kind)
    kind.open(REDMINE) do |deployment|
      clients = Clients.new(deployment)
      clients.during { restart(deployment) }
      figures = { "server" => kind::TITLE, "version" => version(kind), **clients.figures }
      figures.tap { |all| puts all.to_json }
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
