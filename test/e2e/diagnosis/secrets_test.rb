# frozen_string_literal: true

require "cgi"
require_relative "../../support/broken_app"
require_relative "../../support/secret_corpus"

# Secrets in the environment, in messages and in requests are masked everywhere: on pages, in JSON, in the terminal and
# in the log, after a failed boot and after a failed request. What developers need stays.
class SecretsTest < BrokenAppTest
  include SecretCorpus

  # Variables whose values no diagnosis shows.
  VARIABLES = %w[
    BUNDLE_GEMS__CONTRIBSYS__COM BUNDLE_RUBYGEMS__PKG__GITHUB__COM SLACK_WEBHOOK STRIPE_KEY GITHUB_PAT PAT HMAC
    ENCRYPTION SIGNING DEVISE_PEPPER ROLLBAR_ACCESS OAUTH DBPASS SSHPRIV CERT_PEM LDAP_BIND TWILIO_SID LICENSE PIN
    SOMETHING_ELSE SECRET_KEY_BASE
  ].to_h { |name| [name, "v#{name.sum}Xq#{name.length}z"] }.freeze

  PRINTING = <<~RUBY
    run(lambda do |env|
      next [200, {}, []] if env["REQUEST_METHOD"] == "GET"

      raise [env["rack.input"].read, env["QUERY_STRING"], env["HTTP_COOKIE"]].join(" ")
    end)
  RUBY

  def test_secrets_of_a_boot_show_nowhere
    app = folder_with("config.ru" => "raise <<'TEXT' + ENV.fetch('SOMETHING_ELSE')\n#{messages}\nTEXT\n")
    server = serve_broken(app, env: VARIABLES)
    doctor = { [] => "doctor in a terminal", ["--json"] => "doctor, JSON" }.to_h do |options, where|
      [where, HighballServer.run("doctor", *options, "-e", "development", app, env: VARIABLES, within: 60).first]
    end
    shown = { "page" => server.get("/", HTML, within: 60).body,
              "text" => server.get("/", { "Host" => "localhost" }).body,
              "JSON" => JSON.generate(server.status), "log" => server.log, **doctor }
    assert_secrets_show_nowhere shown
    VARIABLES.each { |name, value| assert_hidden shown, value, name }
    VARIABLES.each_key { |name| assert_includes shown["page"], "<dt>#{name}</dt>" }
    environment = server.status.dig("diagnosis", "environment")
    assert_equal ["development", ENV.fetch("PATH")], environment.values_at("RAILS_ENV", "PATH")
    assert_includes shown["page"], "wrong password"
  end

  # Not even where a secret of the application is one of these words.
  def test_remedies_and_the_names_of_tasks_stay
    message = "Missing `secret_key_base` for 'staging' environment, set this string with `bin/rails credentials:edit`"
    server = assert_diagnosed(
      folder_with("config.ru" => "raise ArgumentError, %(#{message})\n"),
      cause: "missing_secret_key_base", file: "config.ru", line: 1, command: /\Aexport SECRET_KEY_BASE=\$\(ruby/,
      remedy: /\ASet SECRET_KEY_BASE in the environment, or add it to the credentials\.\z/,
      env: { "DB_PASS" => "credentials.", "API_TOKEN" => "SecureRandom" }
    )
    assert_includes server.log, "bin/rails credentials:edit"
  end

  def test_secrets_in_messages_of_requests_show_nowhere
    server = serve(folder_with("config.ru" => PRINTING), environment: "development", env: VARIABLES)
    assert_secrets_show_nowhere answers(server, "/", {}, messages)
  end

  def test_secrets_of_requests_show_nowhere
    server = serve(folder_with("config.ru" => PRINTING), environment: "development")
    TARGETS.each do |target, secret|
      shown = answers(server, target, FIELDS, "no")
      assert_hidden shown.except("log"), secret, target
      FIELD_SECRETS.each { |value| assert_hidden shown.except("log"), value, "a field" }
      assert_includes shown["page"], "POST #{target[%r{\A/[a-z]*}]}"
      FIELDS.each_key { |name| assert_match %r{<dt>#{name}</dt>}i, shown["page"] }
    end
    log = server.log.lines.grep_v(/" 500 \d/).join # the access log has the targets as they were
    TARGETS.except("/?whatever=wh4tEv3rV4lue").each { |target, secret| refute_includes log, secret, target }
    %w[firstC00k secondC00k].each { |secret| refute_includes log, secret }
  end

  def test_harmless_parts_of_requests_are_shown
    server = serve(folder_with("config.ru" => PRINTING), environment: "development")
    target = "/posts/123e4567-e89b-12d3-a456-426614174000?page=2&q=tea"
    page = CGI.unescapeHTML(answers(server, target, { "Sec-Fetch-Mode" => "navigate" }, "no")["page"])
    ["POST #{target}", "<dd>tea</dd>", "<dt>Accept</dt><dd>text/html</dd>", "<dd>navigate</dd>"].each do |kept|
      assert_includes page, kept
    end
  end

  private

  def messages = TEXTS.values.map(&:first).join("\n")

  # The error page for a developer, in each format, and the log.
  def answers(server, target, fields, body)
    forms = { "page" => "text/html", "JSON" => "application/json", "text" => "*/*" }
    shown = forms.transform_values do |accept|
      fields = HTML.merge(fields, "Accept" => accept, "Content-Type" => "text/plain")
      answer = server.request("POST", target, fields, body)
      assert_equal 500, answer.status
      answer.body.dup.force_encoding("UTF-8")
    end
    wait_for("the log") { server.log.include?("RuntimeError") }
    shown.merge("log" => server.log)
  end

  def assert_secrets_show_nowhere(shown)
    TEXTS.each { |name, (_, *secrets)| secrets.each { |secret| assert_hidden shown, secret, name } }
    shown.each_value { |text| assert_includes text, "[masked]" }
  end
end
