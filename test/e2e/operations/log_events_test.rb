# frozen_string_literal: true

require "json"
require_relative "../../support/e2e_test"
require_relative "../../support/log_events"

# A server with `log_format = json`: each line names an event of docs/log-events.md, with its level and its fields.
class LogEventsOfServersTest < E2ETest
  APP = <<~'RUBY'
    run lambda { |env|
      raise ArgumentError, "wrong" if env["PATH_INFO"] == "/raise"
      [200, {}, [Process.pid.to_s]]
    }
  RUBY
  # What every line may have.
  ALWAYS = %w[time level event message application].freeze
  # Events of what the test does.
  HAPPENED = %w[booting application_found booted worker_ready serving exception_raised worker_died restart_begun
                restarted configuration_not_reloaded stopping stopped].freeze

  def test_each_line_names_an_event
    app = folder_with("config.ru" => APP, "config/highball.toml" => "threads = 2\n")
    server = serve(app, "--log-format", "json", ready: nil)
    wait_for("an answer") { server.port && server.get("/").status == 200 }
    assert_equal 500, server.get("/raise").status
    HighballServer.kill(Integer(server.get("/").body))
    wait_for("another worker") { server.log.include?('"worker_died"') && server.settled? }
    highball("restart", *server.which)
    File.write(File.join(app, "config/highball.toml"), "threads = many\n")
    server.signal("HUP")
    wait_for("the error") { server.log.include?("configuration_not_reloaded") }
    server.stop
    lines = server.log.lines.map { |line| JSON.parse(line) }
    lines.each { |line| assert_listed(line) }
    assert_empty HAPPENED - lines.map { |line| line["event"] }
  end

  private

  def assert_listed(line)
    event = LogEvents.all.find { |one| one.name == line["event"] }
    refute_nil event, line.inspect
    assert_includes event.levels, line["level"], line.inspect
    assert_empty line.keys - ALWAYS - event.fields, line.inspect
  end
end
