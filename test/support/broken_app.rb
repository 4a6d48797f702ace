# frozen_string_literal: true

require_relative "e2e_test"

# A test of applications that do not boot: each is served in development, and the log, `highball status --json`,
# `highball doctor --json` and the page have to show the same diagnosis.
class BrokenAppTest < E2ETest
  WELL = "run ->(_env) { [200, {}, [\"it runs\"]] }\n"
  HTML = { "Accept" => "text/html", "Host" => "localhost" }.freeze

  # Serves an app that does not boot, and waits for the failed boot: the server.
  def serve_broken(app, *options, **settings)
    server = HighballServer.new(app, *options, environment: "development", **settings)
    @servers << server
    wait_for("the end of the first boot", within: 60) do
      raise HighballServer::NotServing, server.log unless server.running?

      server.port && server.status["phase"] == "failed"
    end
    server
  end

  # Asserts the diagnosis of this app everywhere; the file is given without its folder.
  def assert_diagnosed(app, cause:, file: nil, line: nil, remedy: nil, command: nil, options: [], env: {})
    server = serve_broken(app, *options, env: env)
    diagnosis = server.status.fetch("diagnosis")
    place = [file && File.join(File.realpath(app), file), line || diagnosis.dig("error", "line")]
    assert_operator cause, :===, diagnosis["cause"], diagnosis
    assert_equal place, diagnosis["error"].values_at("file", "line"), diagnosis["error"] if file
    assert_match remedy, diagnosis["remedy"].to_s if remedy
    command ? assert_match(command, diagnosis["command"].to_s) : assert_nil(diagnosis["command"])
    assert_in_log server.log, diagnosis
    assert_on_page server.get("/", HTML, within: 60), diagnosis, file, line
    assert_from_doctor app, diagnosis, options, env
    server
  end

  private

  def assert_in_log(log, diagnosis)
    assert_includes log, "cause=#{diagnosis['cause']}"
    assert_includes log, "command: #{diagnosis['command']}" if diagnosis["command"]
    assert_includes log, diagnosis["remedy"].lines.first.chomp if diagnosis["remedy"]
    file, line = diagnosis["error"].values_at("file", "line")
    assert_match(/at[:=] ?#{Regexp.escape([file, line].compact.join(':'))}/, log) if file
  end

  def assert_on_page(answer, diagnosis, file, line)
    assert_equal 503, answer.status
    assert_match %r{\Atext/html}, answer["content-type"]
    page = CGI.unescapeHTML(answer.body.force_encoding("UTF-8"))
    assert_includes page, diagnosis["cause"].tr("_", " ")
    [diagnosis["remedy"], diagnosis["command"]].compact.each { |text| assert_includes page, text }
    assert_includes page, "<h2>#{file}<span>:#{line}</span>" if line && File.file?(File.join(diagnosis["folder"], file))
  end

  def assert_from_doctor(app, diagnosis, options, env)
    output = highball_fails("doctor", "--json", "-e", "development", *options, app, env: env, within: 60)
    found = JSON.parse(output[output.index("{\n")..]).fetch("diagnosis")
    assert_equal diagnosis.slice("cause", "command", "step"), found.slice("cause", "command", "step")
    assert_equal diagnosis["error"].slice("file", "line"), found["error"].slice("file", "line")
  end
end
