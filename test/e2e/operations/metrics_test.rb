# frozen_string_literal: true

require_relative "../../support/upgrade_test_case"
require_relative "../../support/admin"
require_relative "../../support/load"
require_relative "../../support/web_server"

# `/metrics`: the numbers, and their form.
class MetricsTest < UpgradeTestCase
  include Admin

  APP = <<~RUBY
    run lambda { |env|
      Process.kill("KILL", Process.pid) if env["PATH_INFO"] == "/die"
      sleep 0.05 if env["PATH_INFO"] == "/slow"
      10.times { GC.start } if env["PATH_INFO"] == "/gc"
      [env["PATH_INFO"] == "/bad" ? 404 : 200, {}, ["ok"]]
    }
  RUBY

  def test_requests_are_counted_by_method_and_status
    server = serve(app_named("blog"), *admin)
    first = metrics
    %w[/ /slow /bad /file.txt].each { |path| server.get(path) }
    server.request("POST", "/", {}, "x")
    server.request("BREW", "/")
    server.exchange("nonsense\r\n\r\n")
    kinds = [%w[GET 2xx], %w[GET 4xx], %w[POST 2xx], %w[other 2xx]]
    assert_equal([3, 1, 1, 1], kinds.map { |kind| request_count(*kind) - request_count(*kind, now: first) })
    now = metrics
    assert_equal 1, now['highball_http_unrouted_requests_total{method="GET",status="4xx"}']
    # The file is the front's.
    name = "highball_http_service_time_seconds"
    assert_equal 5, now["#{name}_count#{APP_LABEL}"] - first["#{name}_count#{APP_LABEL}"]
    assert_operator now["#{name}_sum#{APP_LABEL}"] - first["#{name}_sum#{APP_LABEL}"], :>, 0.05
  end

  # Sums agree with those of a load generator while workers are killed and replaced, and over a hot restart.
  def test_sums_agree_with_a_load
    server = serve(app_named("blog"), *admin, "--drain-timeout", "2s", workers: 2)
    before = request_count
    outcomes = Load.during(server) do
      2.times { HighballServer.kill(server.worker_pids.fetch(0)) && wait_for("its end") { server.settled? } }
      highball("restart", *server.which, within: 60)
    end
    old = all_answers(outcomes, before)
    assert_equal 2, metrics['highball_worker_ends_total{app="blog",cause="crashed"}']
    assert_equal 2, metrics['highball_worker_ends_total{app="blog",cause="retired"}']
    assert_equal 2, metrics['highball_app_generation{app="blog"}']
    assert_equal 1, metrics['highball_restarts_total{app="blog",asked_by="command",outcome="done"}']
    upgrade(server)
    wait_for("the new process to be asked") { metrics.fetch('highball_app_generation{app="blog"}') == 1 }
    before = request_count
    all_answers(Load.during(server) { wait_for("requests") { request_count > before + 200 } }, before)
    assert_operator old, :>, 100
  end

  def test_failed_restarts_are_counted
    app = app_named("blog")
    server = serve(app, *admin)
    File.write(File.join(app, "config.ru"), "raise 'no luck'")
    _ = highball_fails("restart", *server.which, within: 60)
    server.signal("USR1")
    failed = %w[signal command].map { |by| %(highball_restarts_total{app="blog",asked_by="#{by}",outcome="failed"}) }
    wait_for("the other one") { metrics.fetch(failed.first) == 1 }
    counts = metrics.select { |series, _| series.start_with?("highball_restarts_total") }
    assert_equal [[1, 1], 2, 13], [counts.values_at(*failed), counts.values.sum, counts.length]
  end

  def test_what_is_shed_and_who_waits
    server = serve(app_named("blog"), *admin, "--max-queue", "1", threads: 1)
    clients = Array.new(6) { server.connect.tap { |client| client.send_request("GET", "/slow") } }
    statuses = clients.map { |client| client.read_response.status }
    assert_equal statuses.count(503), metrics['highball_http_shed_requests_total{app="blog"}']
    assert_includes statuses, 503
    assert_equal 1, metrics['highball_workers{app="blog",state="serving"}']
    assert_equal 1, metrics['highball_app_phase{app="blog",phase="serving"}']
    assert_operator metrics['highball_resident_memory_bytes{app="blog",kind="worker"}'], :>, 5 * MIB
    assert_operator metrics["process_resident_memory_bytes"], :>, MIB
  ensure
    clients&.each(&:close)
  end

  # Sums outlive the worker that has collected, and a stopped worker holds up nothing.
  def test_garbage_collectors_of_workers
    server = serve(app_named("blog"), *admin)
    majors = -> { metrics.fetch('highball_ruby_gc_total{app="blog",kind="major"}') }
    assert_equal 0, majors.call
    server.get("/gc")
    wait_for("the collections") { majors.call >= 10 }
    known = metrics
    assert_operator known['highball_ruby_heap_slots{app="blog",state="live"}'], :>, 10_000
    assert_operator known['highball_ruby_heap_bytes{app="blog"}'], :>, 100_000
    worker = server.worker_pids.first
    stop_processes([worker])
    assert_operator majors.call, :>=, 10
    HighballServer.kill(worker)
    wait_for("another worker") { server.settled? && server.worker_pids != [worker] }
    assert_operator majors.call, :>=, 10
  ensure
    HighballServer.kill(worker) if worker
  end

  # Whatever clients send, the number of series is the same.
  def test_clients_add_no_series
    server = serve(app_named("blog"), *admin)
    %w[GET BREW].each { |method| server.request(method, "/") }
    series = metrics.keys
    40.times { |number| server.request("BREW#{number}", "/#{number}?#{number}", { "Host" => "h#{number}.test" }) }
    assert_equal series.sort, metrics.keys.sort
  end

  def test_promtool_finds_nothing
    serve(app_named("blog"), *admin)
    promtool("check", "metrics", stdin: ask_admin("/metrics").body)
  end

  def test_alert_rules_are_valid
    promtool("check", "rules", File.join(HighballServer::ROOT, "docs/monitoring/highball-alerts.yml"))
    promtool("test", "rules", File.join(HighballServer::ROOT, "test/support/highball-alerts-test.yml"))
  end

  # Each metric that rules and dashboard name exists.
  def test_rules_and_dashboard_name_metrics_that_there_are
    server = serve(app_named("blog"), *admin)
    server.get("/")
    known = ask_admin("/metrics").body.scan(/^# TYPE (\S+)/).flatten + %w[highball_certificate_expiry_timestamp_seconds]
    %w[highball-alerts.yml highball-dashboard.json].each do |file|
      text = File.read(File.join(HighballServer::ROOT, "docs/monitoring", file))
      names = text.scan(/\bhighball_\w+/).map { |name| name.sub(/_(bucket|sum|count)\z/, "") }.uniq
      refute_empty names
      assert_empty names - known, file
    end
    JSON.parse(File.read(File.join(HighballServer::ROOT, "docs/monitoring/highball-dashboard.json")))
  end

  private

  APP_LABEL = '{app="blog"}'

  def app_named(name)
    File.join(folder_with("#{name}/config.ru" => APP, "#{name}/public/file.txt" => "file"), name)
  end

  # Each series with its value.
  def metrics
    lines = ask_admin("/metrics").body.lines.grep_v(/^#/)
    lines.to_h { |line| line.chomp.rpartition(" ").values_at(0, 2).then { |name, value| [name, Float(value)] } }
  end

  # The sum of all answers, or of those with these labels.
  def request_count(method = nil, status = nil, now: metrics)
    now.sum do |name, value|
      next 0 unless name.start_with?("highball_http_requests_total{")
      next 0 if method && !name.include?("method=\"#{method}\",status=\"#{status}\"")

      value
    end
  end

  # Compares the answers with the metrics, and returns their number. A worker may have been killed with a request.
  def all_answers(outcomes, before)
    results = outcomes.map(&:result).tally
    assert_empty results.keys - [200, 502, "closed", "Errno::ECONNRESET", "Errno::EPIPE"], results
    answered = results.slice(200, 502).values.sum
    wait_for("as many in the metrics as there were: #{results}") { request_count - before == answered }
    answered
  end

  def promtool(*arguments, stdin: "")
    needs("promtool", "prometheus")
    output, ended = Open3.capture2e("promtool", *arguments, stdin_data: stdin)
    assert_predicate ended, :success?, output
  end
end
