# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../../support/apm_collector"
require_relative "../../support/bundled_blog"
require_relative "../../support/changed_blog"
require_relative "../../support/e2e_test"

# The agents of monitoring services meet the server: doubles that make the same calls (test/support/apm_agents), in
# one Rails application.
class ApmAgentsTest < E2ETest
  include BundledBlog
  include ChangedBlog

  DOUBLES = File.expand_path("../../support/apm_agents", __dir__)
  AGENTS = %w[newrelic datadog sentry skylight appsignal scout elastic].freeze
  FILES = %w[newrelic_rpm datadog sentry skylight appsignal scout_apm elastic_apm].freeze
  GEM = "gem \"newrelic_rpm\", path: \"#{DOUBLES}\", require: %w[#{FILES.join(' ')}]\n".freeze
  CONTROLLER = <<~RUBY
    class WorkController < ActionController::Base
      def show
        sleep(params[:seconds].to_f)
        render plain: Process.pid.to_s
      end
    end
  RUBY
  ROUTES = "  get \"tasks/:id\", to: \"work#show\"\n  get \"fiber/:id\", to: \"work#show\"\n"
  # What docs/apm.md advises for workers that become molds.
  BEFORE_REFORK = "Highball.before_refork { Sentry.session_flusher&.flush }\n"

  def setup
    super
    @collector = ApmCollector.new
    @number = 0
    @answers = {} # the worker of each request
  end

  def teardown
    super
    @collector.close
  end

  def test_every_worker_reports_each_request_once
    server = serve_agents("Highball.after_fork { Appsignal.forked }\n", workers: 2, threads: "1..4")
    assert_both_report(server)
    HighballServer.kill(server.worker_pids.first)
    wait_for("another worker") { server.settled? }
    assert_both_report(server)
    highball("restart", *server.which, within: 60)
    assert_both_report(server)
    # Nothing waits for a minute to be over.
    at_once = work(server, 6)
    server.stop
    assert_reported_once(at_once)
    assert_empty @collector.shared
    assert_identities
  end

  # A worker becomes the mold, with threads and connections of the agents.
  def test_every_worker_reports_after_a_refork
    server = serve_agents(BEFORE_REFORK, workers: 2, env: { "NEW_RELIC_AGGRESSIVE_KEEPALIVE" => "false" })
    assert_both_report(server)
    highball("refork", *server.which, within: 60)
    at_once = work(server, 12)
    server.stop
    assert_reported_once(at_once)
    assert_empty @collector.shared
    assert_sessions
  end

  def test_queue_time_names_and_fibers
    own = { "NEW_RELIC_DISPATCHER" => "unicorn" }
    server = serve_agents("", "--request-start", "on", "--fibers", "/fiber/*", threads: 1, env: own)
    first, second = in_the_queue(server)
    assert_reported_once([first, second])
    %w[newrelic datadog sentry appsignal scout].each do |agent|
      waited = [first, second].map { |number| transaction(agent, number)["queue"] }
      assert_operator waited.first, :<, waited.last, agent
      assert_includes 0.25..2, waited.last, agent
    end
    dispatchers = @collector.of("newrelic", "connect").map { |report| report["dispatcher"] }
    assert_equal ["unicorn"], dispatchers, "what the user has set counts"
    assert_fibers(server)
  end

  private

  # Serves the blog with all agents. `hooks`: its config/highball.rb.
  def serve_agents(hooks, *options, env: {}, **settings)
    blog = bundled_blog(GEM)
    insert(blog, "config/routes.rb", ROUTES)
    File.write(File.join(blog, "app/controllers/work_controller.rb"), CONTROLLER)
    File.write(File.join(blog, "config/highball.rb"), hooks)
    FileUtils.mkdir_p(File.join(blog, "tmp"))
    @scouts = File.join(blog, "tmp/scout_*.data")
    env = { **ENVIRONMENT, "APM_PORT" => @collector.port.to_s, **env }
    serve(blog, *options, complete: true, env: env, **settings)
  end

  # Sends requests at the same time; returns their numbers.
  def work(server, count, seconds: 0.2)
    numbers = Array.new(count) { (@number += 1).to_s }
    concurrently(count) { |index| ask(server, "/tasks/#{numbers[index]}?seconds=#{seconds}") }
    numbers
  end

  def ask(server, target)
    answer = server.get(target, within: 30)
    assert_equal 200, answer.status
    @answers[target[/\d+/]] = answer.body.to_i
  end

  # All agents report the requests of all workers while these run.
  def assert_both_report(server)
    numbers = []
    wait_for("requests in both workers") do
      numbers.concat(work(server, 6))
      (server.worker_pids - @answers.values_at(*numbers)).empty?
    end
    wait_for("all reports") { AGENTS.all? { |agent| (numbers - reported(agent)).empty? } }
    assert_reported_once(numbers)
  end

  def transactions(agent) = @collector.of(agent, "transaction") + (agent == "scout" ? left_by_scout : [])

  # What the next process to run would report.
  def left_by_scout
    Dir[@scouts].flat_map { |path| File.readlines(path) }.map { |line| JSON.parse(line) }
  rescue Errno::ENOENT
    retry # one has just been reported
  end

  def reported(agent) = transactions(agent).map { |report| report["id"] }

  def transaction(agent, number) = transactions(agent).find { |report| report["id"] == number }

  def assert_reported_once(numbers)
    AGENTS.each do |agent|
      # Of one look: a report may be on its way from a file to the collector at the next one.
      found = wait_for("all reports of #{agent}") do
        reports = transactions(agent).select { |report| numbers.include?(report["id"]) }
        reports if (numbers - reports.map { |report| report["id"] }).empty?
      end
      due = numbers.map { |number| [number, "WorkController#show #{number}", @answers.fetch(number)] }
      assert_equal due.sort, found.map { |report| report.values_at("id", "name", "pid") }.sort, agent
    end
  end

  # New Relic connects in workers alone. Datadog's hook has run once in each of them, and its parent is a mold.
  def assert_identities
    connected = @collector.of("newrelic", "connect")
    assert_equal ["puma"], connected.map { |report| report["dispatcher"] }.uniq
    assert_equal @answers.values.uniq.sort, connected.map { |report| report["by"] }.sort
    molds, workers = @collector.of("datadog", "started").partition { |report| report["parent"].nil? }
    assert_equal 2, molds.length
    assert_empty workers.map { |report| report["parent"] } - molds.map { |report| report["id"] }
    assert_equal ["highball"], [*molds, *workers].map { |report| report["service"] }.uniq
    assert_empty @answers.values - @collector.of("appsignal", "started").map { |report| report["by"] }
  end

  # Each process has counted its own requests.
  def assert_sessions
    counted = @collector.of("sentry", "sessions").group_by { |report| report["by"] }
    counted.transform_values! { |reports| reports.sum { |report| report["count"] } }
    assert_equal @answers.values.tally, counted
  end

  # One request keeps the only thread busy, another waits for it.
  def in_the_queue(server)
    busy = Thread.new { ask(server, "/tasks/1?seconds=1.2") }
    wait_for("a busy worker") { server.status["workers"].sum { |worker| worker["in_flight"] } == 1 }
    ask(server, "/tasks/2")
    busy.join
    %w[1 2]
  end

  # Two requests at the same time on one thread. Sentry's agent keeps what belongs to a request by thread.
  def assert_fibers(server)
    slow = Thread.new { ask(server, "/fiber/3?seconds=0.8") }
    wait_for("a request on a fiber") { server.status["workers"].sum { |worker| worker["streams"] } == 1 }
    ask(server, "/fiber/4?seconds=0.1")
    slow.join
    wait_for("all reports") { AGENTS.all? { |agent| (%w[3 4] - reported(agent)).empty? } }
    right = AGENTS.select do |agent|
      %w[3 4].all? { |number| transaction(agent, number)["name"] == "WorkController#show #{number}" }
    end
    assert_equal AGENTS - ["sentry"], right
  end
end
