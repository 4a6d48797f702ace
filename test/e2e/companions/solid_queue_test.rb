# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/job_queue"
require_relative "../../support/load"
require_relative "../../support/puma_fixtures"

# Web and jobs by one command, from the config/puma.rb that Rails 8 writes (`plugin :solid_queue`).
class SolidQueueTest < E2ETest
  include JobQueue

  PUMA = File.read(File.join(PumaFixtures::FOLDER, "rails80.rb"))
  FORKED = "[[process]]\nname = 'jobs'\ncommand = 'bin/jobs'\nfork = 'on'\n"

  def test_the_plugin_runs_the_jobs_if_it_is_asked_to
    server = serve_queue
    number = enqueue(server)
    wait_for("the job") { jobs_in(@folder, "done") == [number] }
    assert_includes server.log, "jobs | Started Supervisor of one"
    refute_includes server.log, "plugin :solid_queue"
    server.signal("TERM")
    assert_predicate server.wait, :success?
    assert_empty jobs_in(@folder, "claimed")
  end

  def test_without_the_variable_nothing_is_started_and_other_processes_replace_it
    server = serve_queue(env: {})
    assert_equal [], server.status["apps"].first["processes"]
    server.stop
    server = serve_queue("--with", "other=sleep 600")
    assert_equal %w[other], names(server)
    assert_match(%r{config/puma\.rb:9: `plugin :solid_queue`: Its jobs do not run: option --with names the processes},
                 server.log)
  end

  def test_no_job_is_lost_or_run_twice_in_restarts_and_no_two_schedulers_run
    long
    server = serve_forked_queue
    numbers = []
    outcomes = Load.during(server, clients: 2) do
      10.times do |version|
        File.write("#{@folder}/version", "v#{version}")
        numbers.concat(Array.new(20) { enqueue(server) })
        command_output(server, "restart")
        wait_for("its jobs") { lines_of(@folder, "starts").last == "v#{version}" }
      end
      File.write("#{@folder}/config.ru", "raise 'no'")
      highball_fails("restart", *server.which, within: 60)
      numbers.concat(Array.new(20) { enqueue(server) })
      wait_for("all jobs") { jobs_in(@folder, "done") == numbers.sort }
    end
    assert_equal [200], outcomes.map(&:result).uniq
    assert_equal numbers.sort, runs(@folder).sort, "each runs once"
    assert_equal %w[one] + Array.new(10) { |version| "v#{version}" }, lines_of(@folder, "starts")
    assert_empty lines_of(@folder, "violations")
  end

  # A process of the jobs is killed again and again; now and then it is the supervisor, which leaves the others behind.
  def test_a_hundred_kills_of_jobs_cost_no_request_and_no_job
    long
    server = serve_forked_queue
    numbers = []
    outcomes = Load.during(server, clients: 2) do
      100.times do |count|
        numbers << enqueue(server)
        kill_one(server, supervisor: (count % 33) == 32)
      end
      wait_for("all jobs", within: 60) { jobs_in(@folder, "done") == numbers.sort }
    end
    assert_equal [200], outcomes.map(&:result).uniq
    assert_empty numbers - runs(@folder)
    assert_empty lines_of(@folder, "violations")
  end

  private

  # With jobs that begin as copies of the mold.
  def serve_forked_queue
    @folder = queue_app(PUMA)
    File.write("#{@folder}/config/highball.toml", FORKED)
    serve(@folder, workers: 2).tap { wait_for("its jobs") { lines_of(@folder, "starts").any? } }
  end

  def serve_queue(*options, env: { "SOLID_QUEUE_IN_PUMA" => "1" })
    @folder = queue_app(PUMA)
    command = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production", *options, @folder]
    server = serve(@folder, command: command, env: env)
    wait_for("its jobs") { env.empty? || options.any? || lines_of(@folder, "starts").any? }
    server
  end

  def names(server) = server.status["apps"].first.fetch("processes").map { |one| one["name"] }

  def kill_one(server, supervisor:)
    pid, forks = wait_for("all of the jobs") do
      pid = server.status["apps"].first.fetch("processes").first["pid"]
      forks = pid ? ProcessFacts.tree(pid) - [pid] : []
      [pid, forks] if forks.length == 3
    end
    HighballServer.kill(supervisor ? pid : forks.sample)
  end
end
