# frozen_string_literal: true

require "json"
require "uri"
require_relative "../../support/admin"
require_relative "../../support/free_port"
require_relative "../../support/traces_test_case"

# `/metrics` names traced requests as examples of their times, to clients that understand this. Prometheus does.
class ExemplarsTest < TracesTestCase
  include Admin

  FORMAT = "application/openmetrics-text; version=1.0.0"

  def test_times_name_the_traces_of_requests
    server = traced(start_collector, *admin)
    server.get("/slow", parent)
    server.get("/unsampled", parent("00", "a" * 32))
    text = ask_admin("/metrics", { "Accept" => FORMAT }).body
    exemplars = text.scan(/^highball_http_(\w+)_time_seconds_bucket\{.*trace_id="#{TRACE}"\} (\S+) \d+\.\d{3}$/)
    assert_equal(%w[first_byte queue service], exemplars.map(&:first).sort)
    assert_operator exemplars.to_h.fetch("service").to_f, :>=, 0.2
    refute_includes text, "a" * 32
    assert text.end_with?("\n# EOF\n")
    plain = ask_admin("/metrics").body
    refute_match(/trace_id|EOF/, plain)
    assert_equal plain.scan(/^# TYPE (\w+?)(?:_total)? counter/).sort, text.scan(/^# TYPE (\w+) counter/).sort
  end

  def test_prometheus_stores_them
    needs("prometheus")
    server = traced(start_collector, "--admin", "127.0.0.1:#{port = free_port}")
    server.get("/slow", parent)
    with_prometheus(port) do |prometheus|
      name = "highball_http_service_time_seconds"
      exemplar = wait_for("the exemplar") do
        stored = ask(prometheus, "query_exemplars", "#{name}_bucket").flat_map { |series| series.fetch("exemplars") }
        stored.find { |one| one.dig("labels", "trace_id") == TRACE }
      end
      assert_operator exemplar.fetch("value").to_f, :>=, 0.2
      assert_equal "histogram", ask(prometheus, "metadata", nil)[name][0]["type"]
      assert_equal 1, ask(prometheus, "query", "up")["result"].first["value"].last.to_i
      requests = ask(prometheus, "query", "highball_http_requests_total{method=\"GET\"}")["result"]
      refute_empty requests, "a counter has its usual name"
    end
  end

  private

  # Yields the port of a Prometheus that scrapes this one.
  def with_prometheus(scraped)
    folder = folder_with("prometheus.yml" => <<~YAML)
      global: { scrape_interval: 1s }
      scrape_configs: [{ job_name: highball, static_configs: [{ targets: ["127.0.0.1:#{scraped}"] }] }]
    YAML
    port = free_port
    pid = spawn("prometheus", "--config.file=#{folder}/prometheus.yml", "--storage.tsdb.path=#{folder}/data",
                "--web.listen-address=127.0.0.1:#{port}", "--enable-feature=exemplar-storage",
                %i[out err] => File.join(folder, "log"))
    yield port
  ensure
    Process.kill("TERM", pid)
    Process.wait(pid)
  end

  # What Prometheus's API answers; [] while it does not.
  def ask(prometheus, what, query)
    parameters = URI.encode_www_form({ query: query, start: Time.now.to_i - 600, end: Time.now.to_i + 600 }.compact)
    HttpConnection.tcp(prometheus).use do |connection|
      answer = connection.get("/api/v1/#{what}?#{parameters}", { "Host" => "127.0.0.1" })
      answer.status == 200 ? JSON.parse(answer.body).fetch("data") : []
    end
  rescue SystemCallError
    []
  end
end
