# frozen_string_literal: true

# Memory of a Rails application with jobs: web and jobs by one command, and started apart.
#
#     ruby bench/jobs.rb blog|redmine [solid_queue] [sidekiq]
#
# The application is the example blog, or Debian's Redmine, with two workers; the jobs are Solid Queue's processes (a
# supervisor that forks a dispatcher, a worker and a scheduler), or Debian's Sidekiq with a Redis. Prints the PSS of all
# processes after requests and jobs. ROUNDS (3) servers of each kind are started. Needs Debian's puma, ruby-sidekiq and
# redis-server.

require "fileutils"
require "net/http"
require "tmpdir"
require_relative "../test/support/free_port"
require_relative "../test/support/highball_server"
require_relative "../test/support/redis_server"
require_relative "../test/support/redmine_app"

ROUNDS = Integer(ENV.fetch("ROUNDS", 3))

# An application with jobs.
class JobsApp
  REQUESTS = 300
  LOADED = <<~RUBY
    require "./config/environment"
    Rails.application.eager_load!
    WORK = lambda do
      20.times { ActiveRecord::Base.connection.tables && ApplicationController.renderer.render(inline: "<%= 1 + 1 %>") }
    end
  RUBY
  # The process model of Solid Queue: each process has loaded the application.
  SOLID_QUEUE = <<~RUBY.freeze
    #{LOADED}
    ActiveRecord::Base.connection_pool.disconnect!
    children = %w[dispatcher worker scheduler].map do |role|
      fork do
        trap("TERM") { exit }
        role == "worker" ? 15.times { WORK.call } : ActiveRecord::Base.connection.tables
        File.write(ENV.fetch("DONE"), "") if role == "worker"
        sleep
      end
    end
    trap("TERM") { children.each { |pid| Process.kill("TERM", pid) } }
    Process.waitall
  RUBY
  SIDEKIQ = <<~RUBY.freeze
    #{LOADED}
    require "sidekiq"
    [Sidekiq.method(:configure_server), Sidekiq.method(:configure_client)].each do |configure|
      configure.call { |config| config.redis = { url: ENV.fetch("REDIS_URL") } }
    end

    class CountJob
      include Sidekiq::Worker

      def perform(last)
        WORK.call
        File.write(ENV.fetch("DONE"), "") if last
      end
    end
  RUBY
  ENQUEUE = "load ENV.fetch('JOBS'); 15.times { |number| CountJob.perform_async(number == 14) }"
  PAGES = { "blog" => "/posts", "redmine" => "/projects" }.freeze

  attr_reader :folder, :environment, :command

  def initialize(name, kind, redis)
    @name = name
    @kind = kind
    @own = Dir.mktmpdir
    @folder = name == "redmine" ? RedmineApp::INSTALLED : copy_of_blog
    jobs = "#{@own}/jobs.rb"
    File.write(jobs, kind == "sidekiq" ? SIDEKIQ : SOLID_QUEUE)
    @command = kind == "sidekiq" ? "sidekiq -c 3 -r #{jobs}" : "ruby #{jobs}"
    @environment = { "RAILS_ENV" => "production", "RACK_ENV" => "production", "REDIS_URL" => redis, "JOBS" => jobs,
                     "SECRET_KEY_BASE" => "0" * 64, "DONE" => "#{@own}/done" }
    @environment.merge!(RedmineApp.copy_instance(@own)) if name == "redmine"
  end

  # The memory of these process trees in MiB, after requests and jobs.
  def used(port, *pids)
    enqueue if @kind == "sidekiq"
    REQUESTS.times { Net::HTTP.get_response(URI("http://127.0.0.1:#{port}#{PAGES[@name]}")).value }
    Deadline.wait("the jobs", within: 60) { File.exist?("#{@own}/done") }
    ProcessFacts.proportional_bytes(pids.flat_map { |pid| ProcessFacts.tree(pid) }.uniq) / (1024.0**2)
  end

  # A configuration with the jobs.
  def config
    "#{@own}/highball.toml".tap do |path|
      File.write(path, "[[process]]\nname = 'jobs'\ncommand = '#{@command}'\nfork = 'on'\n")
    end
  end

  def log = "#{@own}/output"

  private

  def copy_of_blog
    "#{@own}/blog".tap { |folder| FileUtils.cp_r("#{HighballServer::EXAMPLES}/blog", folder) }
  end

  def enqueue
    system(@environment, "ruby", "-e", ENQUEUE, chdir: @folder, err: log) || raise(File.read(log))
  end
end

# The ways to start web and jobs.
class JobsBench
  include FreePort

  WAYS = { "Puma, and the jobs apart" => :puma, "Highball, and the jobs apart" => :apart,
           "Highball, with the jobs" => :together }.freeze

  def initialize(app, kind)
    @app_name = app
    @kind = kind
    @redis = RedisServer.new(durable: false) if kind == "sidekiq"
  end

  def run
    figures = Array.new(ROUNDS) { WAYS.transform_values { |way| measure(way) } }
    puts "#{@app_name}, #{@kind}: PSS of web and jobs, MiB"
    WAYS.each_key do |title|
      middle = figures.map { |round| round[title] }.sort[ROUNDS / 2]
      puts format("  %-30<title>s %6.1<middle>f", { title: title, middle: middle })
    end
  ensure
    @redis&.kill
  end

  private

  def measure(way)
    @app = JobsApp.new(@app_name, @kind, @redis&.url || "")
    @started = []
    send(way)
  ensure
    @server&.finish
    @server = nil
    @started.each { |pid| Process.kill("TERM", pid) && Process.wait(pid) }
  end

  def puma
    port = free_port
    web = start("puma", "--no-config", "--quiet", "--workers", "2", "--preload", "--threads", "3:3",
                "--bind", "tcp://127.0.0.1:#{port}", "config.ru")
    Deadline.wait("Puma", within: 60) { FreePort.taken?(port) }
    @app.used(port, web, jobs_apart)
  end

  def apart
    @server = HighballServer.start(@app.folder, workers: 2, env: @app.environment)
    @app.used(@server.port, @server.pid, jobs_apart)
  end

  def together
    @server = HighballServer.start(@app.folder, "--config", @app.config, workers: 2, env: @app.environment)
    @app.used(@server.port, @server.pid)
  end

  def jobs_apart = start(*@app.command.split)

  def start(*command)
    pid = Process.spawn(@app.environment, *command, chdir: @app.folder, %i[out err] => @app.log)
    @started << pid
    pid
  end
end

app, *kinds = ARGV
(kinds.empty? ? %w[solid_queue sidekiq] : kinds).each { |kind| JobsBench.new(app, kind).run }
