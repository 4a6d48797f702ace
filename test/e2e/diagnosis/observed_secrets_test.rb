# frozen_string_literal: true

require_relative "../../support/secret_corpus"
require_relative "../../support/slow_app"
require_relative "../../support/traces_test_case"

# Secrets of requests show nowhere in what is observed of an application: spans, slow requests, profiles and the log.
class ObservedSecretsTest < TracesTestCase
  include SecretCorpus
  include SlowApp

  SLEEPY = "run lambda { |env|\n  sleep 0.3 if env['REQUEST_METHOD'] == 'POST'\n  [200, {}, []]\n}\n"

  def test_secrets_of_requests_show_nowhere
    collector = start_collector
    options = ["--otlp-endpoint", collector.endpoint, "--slow-request", "200ms", "--access-log", "none"]
    server = serve(folder_with("config.ru" => SLEEPY), *options, threads: 16)
    profile = profile_while(server) { ask(server) }
    wait_for("the slow requests") { slow_requests(server).count { |one| one["state"] == "ended" } == TARGETS.length }
    all = TARGETS.length + TEXTS.length
    wait_for("all spans") { collector.spans.count { |span| span.kind == "SERVER" } >= all }
    shown = { "spans" => JSON.generate(collector.spans.map(&:to_a)), "profile" => profile, "log" => server.log,
              "slow requests" => JSON.generate(slow_requests(server)), "status" => JSON.generate(server.status),
              "status --slow" => highball("status", "--slow", *server.which) }
    assert_hidden_everywhere(shown)
    ["spans", "slow requests", "profile"].each { |where| assert_includes shown[where], "/password/reset/[masked]" }
    assert_includes shown["spans"], "page=2&q=tea"
  end

  private

  def profile_while(server)
    profile = Thread.new do
      highball("profile", "--mode", "wall", "--group", "path", "--seconds", "4", "--output", "-", *server.which,
               within: 60)
    end
    worker = server.worker_pids.first
    wait_for("the profile") { ProcessFacts.sampled?(worker) }
    yield
    profile.value
  end

  # Slow requests for each target, and others from each user agent.
  def ask(server)
    slow = TARGETS.each_key.map { |target| Thread.new { server.request("POST", target, FIELDS, "") } }
    TEXTS.each_value do |text, *|
      server.get("/?page=2&q=tea", { "Host" => "localhost", "User-Agent" => text.tr("\n", " ") })
    end
    slow.each(&:join)
  end

  def assert_hidden_everywhere(shown)
    TARGETS.each { |target, secret| assert_hidden shown, secret, target }
    FIELD_SECRETS.each { |secret| assert_hidden shown, secret, "a field" }
    TEXTS.each { |name, (_, *secrets)| secrets.each { |secret| assert_hidden shown, secret, name } }
  end
end
