# frozen_string_literal: true

require "json"
require_relative "../../support/axe"
require_relative "../../support/browser"
require_relative "../../support/e2e_test"
require_relative "../../support/screens"

# Error pages of development in Chromium: a developer sees the line and the calls, opens folded calls, copies the text,
# and all of it is accessible on a phone and on a desk, light and dark.
class ErrorPagesInABrowserTest < E2ETest
  SHOP = <<~RUBY
    class Shop
      def call(env)
        return [200, {}, ["open"]] unless env["PATH_INFO"] == "/price"

        raise KeyError, "no <b>milk</b> & no tea"
      end
    end
  RUBY
  CONFIG = "require_relative \"shop\"\n\nuse Rack::Runtime\nshop = Shop.new\n\n\nrun ->(env) { shop.call(env) }\n"
  CALLER = 7

  def test_a_request_that_raises
    server = serve_shop
    in_browser(server.url("/price")) do |browser|
      browser.see "KeyError: no <b>milk</b> & no tea"
      browser.find ".calls li", text: "config.ru:#{CALLER}"
      link = browser.find(".source h2 a")
      assert_equal "vscode://file#{File.realpath(@folder)}/shop.rb:5", link.attribute("href")
      assert_equal "raise", browser.find(".source .here .k").text
      browser.click "summary", text: "in rack"
      browser.find ".others pre", text: "runtime.rb"
      assert_copies(browser, /KeyError: no <b>milk/)
      refute_includes browser.text("body"), "What to do"
      assert_accessible(browser)
    end
  end

  def test_an_application_that_does_not_boot
    server = serve_shop("shop.rb" => "class Shop\n  def call(env\n  end\nend\n")
    in_browser(server.url) do |browser|
      browser.see "SyntaxError"
      browser.find ".remedy h2", text: "What to do"
      assert_copies(browser, /SyntaxError/)
      assert_accessible(browser)
    end
  end

  def test_a_browser_that_is_not_known
    server = serve_shop
    in_browser("http://127.0.0.1:#{server.port}/price") do |browser|
      browser.see "Open the link that Highball printed"
      assert_accessible(browser)
    end
  end

  # What visitors get has the same style, which is all that its policy allows.
  def test_the_maintenance_page
    server = serve_shop("tmp/maintenance.json" => { message: "Back at noon, with <b>tea</b>" }.to_json)
    in_browser(server.url) do |browser|
      browser.see "Back at noon, with <b>tea</b>"
      browser.see "Please try again in 10 minutes."
      width = browser.driver.execute_script("return getComputedStyle(document.querySelector('main')).maxWidth")
      assert_equal "640px", width
      assert_accessible(browser)
    end
  end

  private

  def serve_shop(files = {})
    @folder = folder_with({ "config.ru" => CONFIG, "shop.rb" => SHOP }.merge(files))
    server = HighballServer.new(@folder, environment: "development", env: { "HIGHBALL_EDITOR" => "code" })
    @servers << server
    wait_for("the port") { server.port }
    server
  end

  def in_browser(url)
    Browser.open do |browser|
      browser.visit url
      yield browser
    end
  end

  # Where the browser allows no copying, the text is selected.
  def assert_copies(browser, pattern)
    browser.click ".copy"
    wait_for("the button's answer") { browser.text(".copy") != "Copy" }
    assert_match pattern, browser.driver.execute_script("return document.querySelector('.text').textContent")
  end

  def assert_accessible(browser)
    skip "axe-core is not installed (bin/test packages)" unless Axe.installed?
    Screens.each do |width, phone, scheme|
      Screens.show(browser.driver, width, phone, scheme)
      assert_operator Screens.page_width(browser.driver), :<=, width
      assert_equal "", Axe.violations(browser.driver), "#{width} #{scheme}"
    end
  end
end
