# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/browser"
require_relative "../../support/examples"

# `highball PATH` without options: it detects what is there, reports it, and serves it.
class DetectionTest < E2ETest
  Examples::ALL.each do |name, (found, content)|
    define_method("test_example_#{name.tr('-', '_')}") do
      missing = Examples.missing_packages(name)
      skip "not installed: #{missing.join(', ')}" if missing.any?
      app = name == "blog" ? copy_of_example(name) : File.join(HighballServer::EXAMPLES, name)
      server = start(app)
      assert_includes server.get("/", { "Host" => "localhost" }).body, content
      assert_match found, server.log
    end
  end

  def test_every_example_is_here
    assert_equal Examples::ALL.keys.sort, Dir.children(HighballServer::EXAMPLES).sort
  end

  def test_the_current_folder
    server = start(File.join(HighballServer::EXAMPLES, "rack-file"), [])
    assert_includes server.get("/").body, "Rack in a file"
  end

  def test_pages_in_a_browser
    Browser.open do |browser|
      %w[rails-file sinatra-classic sinatra-file].each do |name|
        browser.visit start(File.join(HighballServer::EXAMPLES, name)).url
        browser.find "h1", text: Examples::ALL[name].last
      end
      browser.visit start(File.join(HighballServer::EXAMPLES, "dist")).url
      browser.find "#script", text: "The script has run."
    end
  end

  # --- files

  def test_a_file_in_the_place_of_a_folder
    app = folder_with("my.ru" => answering("my.ru"), "one.rb" => "One = ->(_env) { [200, {}, ['one.rb']] }\n",
                      "config.ru" => answering("config.ru"))
    { "my.ru" => "my.ru", "one.rb" => "one.rb", "." => "config.ru" }.each do |path, body|
      server = start(app, [File.join(app, path)])
      assert_equal body, server.get("/").body
      server.stop
    end
  end

  def test_restarts_of_a_file
    app = folder_with("my.rb" => "My = ->(_env) { [200, {}, ['1']] }\n")
    server = start(app, ["#{app}/my.rb"])
    File.write("#{app}/my.rb", "My = ->(_env) { [200, {}, ['2']] }\n")
    highball("restart", "--port", server.port.to_s)
    assert_equal "2", server.get("/").body
  end

  def test_a_file_without_an_application_says_what_is_missing
    assert_match(/app\.rb defines nothing that responds to `call\(env\)`/,
                 refused(folder_with("app.rb" => "->(env) { env }\n")))
    several = "class A\n  def call(env) = env\nend\nclass B\n  def call(env) = env\nend\n"
    assert_match(/app\.rb defines several applications \(A, B\)/, refused(folder_with("app.rb" => several)))
  end

  def test_a_folder_without_an_application_says_what_was_looked_for
    output = refused(folder_with("README" => ""))
    clues = ["finding the app", "config.ru", "config/environment.rb", "app.rb", "index.html"]
    clues.each { |clue| assert_includes output, clue }
    assert_includes refused(folder_with("_config.yml" => "")), "jekyll build"
    assert_match(%r{name it: highball /\S+/site\.ru}, refused(folder_with("site.ru" => "")))
  end

  # --- versions, keys and databases

  def test_another_ruby_than_the_folder_asks_for
    app = folder_with("config.ru" => answering("hi"), ".ruby-version" => "2.7.1\n")
    log = start(app, ["--ruby", "ruby", app]).log # named, so that no version manager has a say
    assert_match(/WARN  \.ruby-version asks for Ruby 2\.7\.1, and this is Ruby #{RUBY_VERSION}/, log)
    File.write("#{app}/.ruby-version", RUBY_VERSION)
    refute_includes start(app, ["--ruby", "ruby", app]).log, "WARN"
  end

  # Does what rbenv does: becomes the Ruby of its choice.
  def test_a_version_manager_starts_ruby
    app = folder_with("config.ru" => "run ->(_env) { [200, {}, [ENV.fetch('CHOSEN_IN')]] }\n",
                      ".ruby-version" => RUBY_VERSION)
    home = folder_with("bin/rbenv" => "#!/bin/sh\n[ \"$1 $2\" = 'exec ruby' ] || exit 9\nshift 2\n" \
                                      "CHOSEN_IN=$(pwd -P) exec #{RbConfig.ruby} \"$@\"\n")
    File.chmod(0o755, "#{home}/bin/rbenv")
    env = { "PATH" => "#{home}/bin:#{ENV.fetch('PATH')}" }
    assert_equal File.realpath(app), start(app, env: env).get("/").body
    File.write("#{home}/bin/rbenv", "#!/bin/sh\necho \"rbenv: version '9.9' is not installed\" >&2\nexit 1\n")
    output = refused(app, env: env)
    assert_match(/version '9\.9' is not installed/, output)
    assert_match(/step="starting Ruby".*remedy: Look at what was printed above/m, output)
  end

  def test_what_rails_will_miss_is_reported_before_it_boots
    app = folder_with(
      "config/application.rb" => "require 'rails/all'\nclass Shop < Rails::Application; end\n",
      "config/environment.rb" => "Rails.application.initialize!\n",
      "config/credentials.yml.enc" => "x", "config.ru" => answering("hi")
    )
    log = start(app).log
    assert_match(%r{WARN  config/credentials\.yml\.enc cannot be read: there is neither config/master\.key}, log)
    assert_match(%r{WARN  there is neither config/database\.yml nor DATABASE_URL}, log)
    log = start(app, env: { "DATABASE_URL" => "my password", "RAILS_MASTER_KEY" => "0" * 32 }).log
    assert_match(/WARN  DATABASE_URL is not a URL/, log)
    refute_match(/my password|credentials/, log)
  end

  # --- static sites

  def test_a_static_site_needs_no_ruby
    server = start(File.join(HighballServer::EXAMPLES, "static"), env: { "PATH" => "/nowhere" })
    assert_equal "text/html; charset=utf-8", server.get("/trees/oak")["content-type"]
    assert_equal server.own_pids.sort, server.pids.sort
    assert_equal ["serving", "static site", nil, []], server.status.values_at("phase", "framework", "ruby", "workers")
  end

  def test_what_a_static_site_does_not_have
    server = start(File.join(HighballServer::EXAMPLES, "static"))
    server.connect do |connection|
      missing = connection.get("/nothing")
      assert_equal 404, missing.status
      assert_includes missing.body, "no such page"
      moved = connection.get("/trees?a=b")
      assert_equal [301, "/trees/?a=b"], [moved.status, moved["location"]]
      assert_equal 200, connection.get("/trees/").status
      assert_equal 405, connection.request("POST", "/", {}, "x").status
    end
    plain = start(folder_with("index.html" => "hi"))
    plain.connect { |connection| 2.times { assert_equal 404, connection.get("/nothing").status } }
  end

  def test_a_static_site_restarts_where_its_link_leads
    releases = folder_with("1/index.html" => "one", "2/index.html" => "two", "3/README" => "")
    File.symlink("1", "#{releases}/current")
    server = start(releases, ["#{releases}/current"])
    assert_equal "one", server.get("/").body
    assert_predicate restart_to(releases, "2", server), :success?
    wait_for("the new site") { server.get("/").body == "two" }
    refute_predicate restart_to(releases, "3", server), :success?
    assert_equal "two", server.get("/").body
    assert_match(/there is no static site/, server.status["last_failure"])
    assert_predicate server.stop, :success?
  end

  private

  def start(app, arguments = [app], env: {})
    serve(app, command: [HighballServer::BINARY, *arguments], env: { "PORT" => "0" }.merge(env))
  end

  def answering(text) = "run ->(_env) { [200, {}, [#{text.inspect}]] }\n"

  # The output for an app that it cannot serve. (In development it would wait until the app is fixed.)
  def refused(app, env: {})
    highball_fails("-e", "production", "-p", "0", app, env: env)
  end

  def restart_to(releases, name, server)
    File.symlink(name, "#{releases}/next")
    File.rename("#{releases}/next", "#{releases}/current")
    HighballServer.run("restart", "--port", server.port.to_s).last
  end
end
