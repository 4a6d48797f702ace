# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/load"

# Sidekiq beside the web, with a Redis for the test.
class SidekiqTest < E2ETest
  # GET /enqueue adds a job.
  WEB = <<~'RUBY'
    require_relative "jobs"
    run lambda { |env|
      next [200, {}, ["ok"]] unless env["PATH_INFO"] == "/enqueue"

      [200, {}, [NoteJob.perform_async.to_s]]
    }
  RUBY
  JOBS = <<~'RUBY'
    require "sidekiq"
    REDIS = { url: ENV.fetch("REDIS_URL") }.freeze
    Sidekiq.configure_client { |config| config.redis = REDIS }
    Sidekiq.configure_server { |config| config.redis = REDIS }

    class NoteJob
      include(defined?(Sidekiq::Job) ? Sidekiq::Job : Sidekiq::Worker)

      def perform
        sleep 0.05
        File.open(File.join(__dir__, "runs"), "a") { |file| file.syswrite("#{jid} #{File.read(File.join(__dir__, 'version'))}\n") }
      end
    end
  RUBY
  SIDEKIQ = "sidekiq -c 3 -r ./jobs.rb"

  def setup
    super
    skip "there is no Sidekiq, or no Redis: apt install ruby-sidekiq redis-server" unless installed?
    @redis = start_redis
  end

  def teardown
    super
  ensure
    HighballServer.kill(@redis, "TERM") if @redis
    Process.wait(@redis) if @redis
  end

  def test_jobs_run_once_through_restarts
    server = serve_sidekiq
    ids = []
    outcomes = Load.during(server, clients: 2) do
      3.times do |version|
        ids.concat(Array.new(15) { server.get("/enqueue").body })
        File.write("#{@folder}/version", "v#{version}")
        command_output(server, "restart")
      end
      wait_for("all jobs", within: 60) { runs.length >= ids.length }
    end
    assert_equal [200], outcomes.map(&:result).uniq
    assert_equal ids.sort, runs.sort
    server.signal("TERM")
    assert_predicate server.wait, :success?
  end

  def test_sidekiq_in_the_bundle_is_offered_once_and_never_started_unasked
    server = serve(sidekiq_app, env: redis)
    wait_for("the offer") { server.log.include?("Sidekiq is in the bundle, and Highball does not start it") }
    assert_includes server.log, 'highball --with sidekiq="bundle exec sidekiq"'
    command_output(server, "restart")
    assert_equal 1, server.log.scan("Sidekiq is in the bundle").length
    assert_equal [], server.status["apps"].first["processes"]
    advice = highball("doctor", "-e", "production", @folder, within: 60, env: redis)
    assert_match(/^ok +jobs_elsewhere: Sidekiq/, advice)
  end

  private

  def installed?
    found = system(RbConfig.ruby, "-e", "gem 'sidekiq'", out: File::NULL, err: File::NULL)
    found && system("redis-server", "--version", out: File::NULL, err: File::NULL)
  end

  def start_redis
    folder = folder_with
    @socket = File.join(folder, "redis.sock")
    pid = Process.spawn("redis-server", "--port", "0", "--unixsocket", @socket, "--save", "", "--dir", folder,
                        out: File::NULL, err: File::NULL)
    wait_for("Redis") { File.socket?(@socket) }
    pid
  end

  def redis = { "REDIS_URL" => "unix://#{@socket}" }

  def sidekiq_app
    @folder = folder_with("config.ru" => WEB, "jobs.rb" => JOBS, "version" => "one")
  end

  def serve_sidekiq
    server = serve(sidekiq_app, "--with", "sidekiq=#{SIDEKIQ}", env: redis)
    wait_for("Sidekiq") { server.status["apps"].first["processes"].first["state"] == "running" }
    server
  end

  def runs = File.exist?("#{@folder}/runs") ? File.readlines("#{@folder}/runs").map { |line| line.split.first } : []
end
