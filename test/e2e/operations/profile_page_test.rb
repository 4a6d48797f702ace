# frozen_string_literal: true

require_relative "../../support/axe"
require_relative "../../support/browser"
require_relative "../../support/e2e_test"
require_relative "../../support/profiled_app"
require_relative "../../support/screens"

# The page that `highball profile` writes, in a browser.
class ProfilePageTest < E2ETest
  include ProfiledApp

  def test_a_person_with_a_keyboard
    server = serve(profiled_app, threads: 3)
    path = File.join(folder_with, "a.html")
    while_asked(server, "/compute", "/make") { profile(server, "--seconds", "2", "--group", "path", "--output", path) }
    Browser.open do |browser|
      browser.visit "file://#{path}"
      browser.find("#graph button", text: "GET /compute")
      %w[light dark].each do |scheme|
        Screens.show(browser.driver, 1280, false, scheme)
        assert_accessible browser
      end
      search(browser)
      move(browser)
      Screens.show(browser.driver, 390, true, "dark")
      assert_operator Screens.page_width(browser.driver), :<=, 390
      problems = browser.driver.logs.get(:browser).select { |entry| entry.level == "SEVERE" }
      assert_empty problems
    end
  end

  private

  def search(browser)
    browser.find("#search").send_keys("add_up")
    browser.find("#graph button.found", text: "Shop.add_up")
    assert_match(/\d+\.\d %.* in stacks with it/, browser.text("#found"))
    assert_match(/Shop\.add_up/, browser.text("#methods tr"))
    browser.find("#search").clear
    browser.find("#search").send_keys("x", :backspace)
  end

  # Down to the widest call, alone, and back.
  def move(browser)
    browser.find("#graph button[tabindex='0']").send_keys(:down)
    assert_match(%r{\AGET /}, focused(browser).text)
    focused(browser).send_keys(:enter)
    assert browser.has?("#reset:not([disabled])")
    assert browser.find("#graph .outer", text: "all")
    focused(browser).send_keys(:escape)
    assert browser.has?("#reset[disabled]")
    assert_equal "all", focused(browser).text
    assert_match(/\Aall: 100\.0 %/, browser.text("#detail"))
  end

  def assert_accessible(browser)
    assert_empty Axe.violations(browser.driver) if Axe.installed?
  end

  def focused(browser) = browser.driver.switch_to.active_element
end
