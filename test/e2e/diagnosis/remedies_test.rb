# frozen_string_literal: true

# marks: long

require "open3"
require_relative "../../support/broken_blog"
require_relative "../../support/browser"
require_relative "../../support/many_apps_test_case"

# A developer whose application does not boot reads the page in the browser, follows the remedy, and reloads the page.
# The application then runs, in the same Highball, as its only application and as one of many.
class RemediesTest < ManyAppsTestCase
  include BrokenBlog

  BROKEN_RUBY = "class Shop\n  def name(\n    \"shop\"\n  end\nend\n"
  WELL = "run ->(_env) { [200, { \"content-type\" => \"text/plain\" }, [\"it runs\"]] }\n"

  # The page as it is shown in a browser.
  class Page
    def initialize(browser) = @browser = browser

    def cause = @browser.text(".remedy h2 span")
    def remedy = @browser.text(".remedy p")
    def command = @browser.text("pre.command")

    # Runs the command that it shows, in the folder that it shows: [output, Process::Status].
    def run_command
      folder = @browser.text(".remedy .where").delete_prefix("in ")
      Open3.capture2e(HighballServer::ENVIRONMENT, "sh", "-c", command, chdir: folder)
    end
  end

  # One for all tests: each start of it takes seconds.
  def self.browser = @browser ||= Browser.new

  def self.run(...)
    super
  ensure
    @browser&.quit
  end

  def test_pending_migrations
    long
    assert_remedied("pending migrations", "Blog", app: -> { blog_with(UNMIGRATED) }, ways: [:alone]) do |page, _app|
      succeed(page, "bin/rails db:migrate")
    end
  end

  def test_a_database_that_is_missing
    long
    app = -> { blog_with(WITHOUT_DATABASE) }
    assert_remedied("database missing", "Blog", app: app, ways: [:among_others]) do |page, _app|
      succeed(page, "bin/rails db:create db:migrate")
    end
  end

  def test_a_file_that_is_missing
    app = -> { folder_with("config.ru" => "require_relative 'lib/prices'\n#{WELL}") }
    assert_remedied("missing file", "it runs", app: app) do |page, _app|
      path = page.remedy[/\A(\S+) does not exist: .*restore the file/, 1]
      FileUtils.mkdir_p(File.dirname(path))
      File.write("#{path.delete_suffix('.rb')}.rb", "")
    end
  end

  def test_a_path_that_is_misspelt
    app = -> { folder_with("config.ru" => "require_relative 'prises'\n#{WELL}", "prices.rb" => "") }
    assert_remedied("missing file", "it runs", app: app) do |page, folder|
      meant = page.remedy[/Did you mean (\S+)\?/, 1]
      File.write(File.join(folder, "config.ru"), "require '#{meant}'\n#{WELL}")
    end
  end

  def test_a_syntax_error
    app = -> { folder_with("config.ru" => "require_relative 'shop'\n#{WELL}", "shop.rb" => BROKEN_RUBY) }
    assert_remedied("syntax error", "it runs", app: app) do |page, folder|
      output, ended = page.run_command
      refute_predicate ended, :success?
      assert_match(/shop\.rb:\d+: /, output)
      File.write(File.join(folder, "shop.rb"), BROKEN_RUBY.sub("name(", "name"))
      output, ended = page.run_command
      assert_predicate ended, :success?, output
    end
  end

  private

  # Shows the page of an application with this mistake (`app` makes its folder), lets the block follow the remedy, and
  # reloads the page, which then shows `shown`. Rails boots three times in each of the ways.
  def assert_remedied(cause, shown, app:, ways: %i[alone among_others])
    browser = self.class.browser
    ways.each do |way|
      server, url, folder = send(way, app.call)
      browser.visit url
      page = Page.new(browser)
      assert_equal cause, page.cause
      yield page, File.realpath(folder)
      browser.driver.navigate.refresh
      browser.see shown
      assert_equal server.pid, server.full_status["pid"]
      assert_includes server.full_status["apps"].map { |one| one["phase"] }, "serving"
    end
  end

  # The command on the page is this one, and fixes the application.
  def succeed(page, command)
    assert_equal command, page.command
    output, ended = page.run_command
    assert_predicate ended, :success?, output
  end

  # Both serve it in development, and wait for nothing but their port.
  def alone(folder)
    server = serve_many(folder, environment: "development")
    [server, server.url, folder]
  end

  def among_others(folder)
    around = folder_with("good/config.ru" => echo("good"))
    bad = File.join(around, "bad")
    FileUtils.mv(folder, bad)
    server = serve_many(bad, File.join(around, "good"), environment: "development")
    [server, server.url(host: "bad.localhost"), bad]
  end
end
