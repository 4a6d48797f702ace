# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/browser"
require_relative "../../support/redmine_app"

# Redmine from Debian's packages: a real application that knows nothing of Highball.
class RedmineTest < E2ETest
  NEW_PASSWORD = "night-train-42"
  ATTACHMENT_BYTES = 5 * MIB

  def setup
    super
    skip "needs the packages redmine and redmine-sqlite" unless RedmineApp.installed?
  end

  def test_log_in_project_issue_and_attachment
    long
    server = serve(RedmineApp::INSTALLED, workers: 2, env: RedmineApp.copy_instance(folder_with), ready: "/login")
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
    # The page uploads the file at once, and has its token once that is done.
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
end
