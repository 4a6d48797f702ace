# frozen_string_literal: true

require "yaml"
require_relative "../support/e2e_test"
require_relative "../support/browser"

# Redmine from Debian's packages: a real application that was not written with Highball in mind.
class RedmineTest < E2ETest
  REDMINE = "/usr/share/redmine"
  INSTANCE = "/etc/redmine/default" # made when the package is installed
  NEW_PASSWORD = "night-train-42"
  ATTACHMENT_BYTES = 5 * MIB

  def setup
    super
    skip "needs the packages redmine and redmine-sqlite" unless File.exist?("#{INSTANCE}/database.yml")
  end

  def test_log_in_project_issue_and_attachment
    server = serve(REDMINE, workers: 2, env: { "X_DEBIAN_SITEID" => site_id(own_instance) }, ready: "/login")
    Browser.open do |browser|
      log_in(browser, server)
      create_project(browser, server)
      create_issue(browser, server)
      download_attachment(browser)
    end
  end

  private

  def log_in(browser, server)
    browser.visit server.url("/login")
    browser.fill "#username", "admin"
    browser.fill "#password", "admin"
    browser.click "#login-submit"
    browser.find "#loggedas", text: "admin"
    return unless browser.has?("#new_password")

    browser.fill "#password", "admin"
    browser.fill "#new_password", NEW_PASSWORD
    browser.fill "#new_password_confirmation", NEW_PASSWORD
    browser.click "#content input[type=submit]"
    browser.find "#flash_notice"
  end

  def create_project(browser, server)
    browser.visit server.url("/projects/new")
    browser.fill "#project_name", "Railway"
    browser.fill "#project_identifier", "railway"
    browser.click "input[name=commit]"
    browser.find "#flash_notice"
  end

  def create_issue(browser, server)
    browser.visit server.url("/projects/railway/issues/new")
    browser.fill "#issue_subject", "Signal stuck at stop"
    browser.attach "input.file_selector", attachment
    # The page uploads the file by itself, and has its token once that is done.
    wait_for("upload of the attachment", within: 30) do
      browser.driver.find_elements(css: "input.token").any? { |field| field.attribute("value").to_s.include?(".") }
    end
    browser.click "input[name=commit]"
    browser.find "h3", text: "Signal stuck at stop"
  end

  def download_attachment(browser)
    browser.click "div.attachments a.icon-download"
    path = browser.downloaded("timetable.bin", ATTACHMENT_BYTES)
    assert_equal Digest::SHA256.file(attachment), Digest::SHA256.file(path)
  end

  def attachment
    @attachment ||= begin
      folder = folder_with("timetable.bin" => Random.new(2).bytes(ATTACHMENT_BYTES))
      File.join(folder, "timetable.bin")
    end
  end

  # A copy of the installed instance, with a database of its own.
  def own_instance
    folder = folder_with("config/secret_key.txt" => File.read("#{INSTANCE}/secret_key.txt"))
    database = YAML.load_file("#{INSTANCE}/database.yml").fetch("production")
    copy_database(database.fetch("database"), "#{folder}/redmine.sqlite3")
    database["database"] = "#{folder}/redmine.sqlite3"
    File.write("#{folder}/config/database.yml", YAML.dump("production" => database))
    %w[files log tmp/cache tmp/pdf tmp/thumbnails public].each { |name| FileUtils.mkdir_p("#{folder}/#{name}") }
    folder
  end

  # With the write-ahead log, in which all of it may still be (Rails 7.1 and later).
  def copy_database(from, to)
    ["", "-wal"].each { |suffix| FileUtils.cp(from + suffix, to + suffix) if File.exist?(from + suffix) }
  end

  # The package looks for its instances below /usr/share/redmine/instances, a symbolic link to
  # /var/lib/redmine: this many steps up end at the root by either path.
  def site_id(folder)
    File.join([".."] * 8, folder)
  end
end
