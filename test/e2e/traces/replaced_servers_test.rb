# frozen_string_literal: true

require_relative "../../support/traces_test_case"

# Collectors around reloads and hot restarts.
class TracesOfReplacedServersTest < TracesTestCase
  def test_a_hot_restart_loses_no_spans
    collector = start_collector
    server = serve_configured(collector)
    under_way = server.connect.tap { |client| client.send_request("GET", "/gate") }
    highball("upgrade", *server.which, within: 60)
    server.get("/of-new")
    File.write(File.join(app, "go"), "")
    assert_equal 200, under_way.read_response.status
    old, new = ["/gate", "/of-new"].map { |path| collector.trace_of(path) }
    assert old["request"].begin < new["request"].begin && new["request"].end < old["request"].end, "both at a time"
  ensure
    under_way&.close
  end

  # The new one has the collector that is configured by then.
  def test_another_collector_takes_effect_with_a_hot_restart
    before = start_collector
    after = start_collector
    server = serve_configured(before)
    configure(after)
    server.signal("HUP")
    wait_for("the reload") { server.log.include?("options of the server have changed") }
    server.get("/before")
    before.trace_of("/before")
    assert_empty after.requests
    highball("upgrade", *server.which, within: 60)
    server.get("/after")
    after.trace_of("/after")
    assert_empty(before.spans.select { |span| span["url.path"] == "/after" })
  end

  private

  def serve_configured(collector)
    configure(collector)
    serve(app, ready: "/ready")
  end

  def configure(collector)
    FileUtils.mkdir_p(File.join(app, "config"))
    File.write(File.join(app, "config/highball.toml"), "otlp_endpoint = '#{collector.endpoint}'\n")
  end
end
