# frozen_string_literal: true

require "cgi"
require_relative "../../support/broken_app"

# Secrets in the environment, in messages and in requests are masked everywhere: on pages, in JSON, in the terminal and
# in the log, after a failed boot and after a failed request. What developers need stays.
class SecretsTest < BrokenAppTest
  # Variables whose values no diagnosis shows.
  VARIABLES = %w[
    BUNDLE_GEMS__CONTRIBSYS__COM BUNDLE_RUBYGEMS__PKG__GITHUB__COM SLACK_WEBHOOK STRIPE_KEY GITHUB_PAT PAT HMAC
    ENCRYPTION SIGNING DEVISE_PEPPER ROLLBAR_ACCESS OAUTH DBPASS SSHPRIV CERT_PEM LDAP_BIND TWILIO_SID LICENSE PIN
    SOMETHING_ELSE SECRET_KEY_BASE
  ].to_h { |name| [name, "v#{name.sum}Xq#{name.length}z"] }.freeze

  # Messages, and the secrets in them.
  TEXTS = {
    "stripe" => ["charge with sk_live_4eC39HqLyjWD", "4eC39HqLyjWD"],
    "stripe webhook" => ["signed by whsec_7Jq2LmNvQe", "7Jq2LmNvQe"],
    "github" => ["push with ghp_9sKd83hdKwQ1zPmX", "9sKd83hdKwQ1zPmX"],
    "github, fine-grained" => %w[github_pat_11AKD83JDKwq82 11AKD83JDKwq82],
    "gitlab" => %w[glpat-Kd83jdKWq82mAsdf Kd83jdKWq82mAsdf],
    "slack" => %w[xoxb-2847583920-aKdJwPqz aKdJwPqz],
    "aws" => ["key AKIAQWERTZUIOPASDFGH", "QWERTZUIOPASDFGH"],
    "azure" => ["AccountName=me;AccountKey=aZur3/k3y+x==;End=1", "aZur3/k3y+x"],
    "shared access signature" => ["https://me.blob.example/c?sv=1&sig=sAs8f%2Bq&sp=r", "sAs8f%2Bq"],
    "signed URL" => ["https://b.s3.example/k?X-Amz-Signature=4mz51gn&X-Amz-Expires=1", "4mz51gn"],
    "JSON web token" => ["jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.s1gnAtur3", "s1gnAtur3"],
    "bearer" => ["sent Bearer bEar3rT0ken", "bEar3rT0ken"],
    "basic" => ["Authorization: Basic bWU6YjRzMWM=", "bWU6YjRzMWM"],
    "basic, short" => ["Authorization: Basic xqz", "xqz"],
    "PEM" => ["-----BEGIN PRIVATE KEY-----\nMIIEpemB0dy\nsec0ndL1ne==\n-----END PRIVATE KEY-----",
              "pemB0dy", "sec0ndL1ne"],
    "slack webhook" => ["https://hooks.slack.com/services/T0SLK/B0HK/sLh00k", "sLh00k"],
    "discord webhook" => ["https://discord.com/api/webhooks/12/d1scH00k", "d1scH00k"],
    "telegram webhook" => ["https://api.telegram.org/bot12:t3leB0t/send", "t3leB0t"],
    "option of a command" => ["curl -u me:curlPw77 http://localhost", "curlPw77"],
    "LDAP bind" => ["ldapsearch -D cn=admin,dc=org -w ldapPw77", "ldapPw77"],
    "LDAP URL" => ["ldap://cn=admin,dc=org:ldapUrl77@ldap:389", "ldapUrl77"],
    "password with /" => ["pg://me:sl4/sh3d@db/blog", "sl4", "sh3d"],
    "password with @" => ["pg://me:4t@s1gn@db/blog", "4t@", "s1gn"],
    "password with quotes" => ["pg://me:qu0\"t3'd@db/blog", "qu0", "t3'd"],
    "user and password without scheme" => ["login me:n0sch3me@db.example", "n0sch3me"],
    "quoted password in a sentence" => ["wrong password 'quotedpw'", "quotedpw"],
    "password in a sentence" => ["the password is sentencepw", "sentencepw"],
    "apikey" => ["apikey commandpw was refused", "commandpw"],
    "second cookie" => ["Cookie: theme=dark; sid=c00kie2; b=c00kie3", "c00kie2", "c00kie3"],
    "what follows a blank" => ["password: blankone blanktwo", "blankone", "blanktwo"],
    "escaped quote" => ["{\"password\":\"esc1\\\"esc2\"}", "esc1", "esc2"],
    "below a telling name" => ["{\"auth\":{\"password\":\"nest3dPw\",\"x\":[\"nest3dX\"]}}", "nest3dPw", "nest3dX"],
    "below a telling name, as Ruby inspects it" => ["{:auth=>{:x=>\"insp3ct\"}, token: {y: \"insp4ct\"}}", "insp3ct",
                                                    "insp4ct"],
    "element" => ["<auth><x>elem3nt</x></auth><password>elem4nt</password>", "elem3nt", "elem4nt"],
    "full-width colon" => ["password\u{ff1a}wid3colon", "wid3colon"],
    "name and value" => ["{\"name\":\"DB_PASSWORD\",\"value\":\"pa1rvalue\"}", "pa1rvalue"],
    "openai" => %w[sk-proj-9sKd83hdKwQ1zPmX9sKd83hd 9sKd83hdKwQ1zPmX]
  }.freeze

  # Requests that fail: a target or field, and the secrets in it.
  TARGETS = {
    "/password/reset/pAth70ken" => "pAth70ken", "/x/da39a3ee5e6b4b0d3255bfef95601890afd80709" => "da39a3ee5e6b",
    "/?reset=r3setV" => "r3setV", "/?code=c0deV" => "c0deV", "/?state=st4teV" => "st4teV", "/?sig=s1gV" => "s1gV",
    "/?pin=739104" => "739104", "/?card=4929103847561020" => "4929103847561020",
    "/?whatever=wh4tEv3rV4lue" => "wh4tEv3rV4lue"
  }.freeze
  FIELDS = {
    "X-CSRF" => "csrfV4lue", "X-CSRF-Token" => "csrfT0ken",
    "X-Amz-Security" => "amzS3c", "X-Amz-Security-Token" => "amzT0k",
    "Authorization" => "Bearer authV4l", "Cookie" => "a=firstC00k; b=secondC00k",
    "X-Whatever" => "wh4tF"
  }.freeze
  FIELD_SECRETS = %w[csrfV4lue csrfT0ken amzS3c amzT0k authV4l firstC00k secondC00k wh4tF].freeze

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

  def assert_hidden(shown, secret, what)
    shown.each do |where, text|
      text = CGI.unescapeHTML(text.dup.force_encoding("UTF-8").scrub)
      place = text[/.{0,60}#{Regexp.escape(secret)}.{0,40}/]
      assert_nil place, "#{secret} (#{what}) is in the #{where}"
    end
  end
end
