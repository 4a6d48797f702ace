# frozen_string_literal: true

require "net/http"
require_relative "../../support/e2e_test"
require_relative "../../support/axe"
require_relative "../../support/browser"
require_relative "../../support/dashboard"
require_relative "../../support/screens"
require_relative "../../support/stuck_app"

# The dashboard's page, in a browser.
class DashboardPageTest < E2ETest
  include StuckApp
  include Dashboard

  WELL = "run ->(_env) { [200, {}, []] }\n"

  def test_in_a_browser
    server = serve(stuck_app, *tcp, *DRAIN, "--admin-actions", workers: 4, threads: 3)
    stick_all(server)
    Browser.open do |browser|
      browser.visit page(server)
      look(browser)
      assert_equal %w[Backtrace Hide], buttons(browser), "no token, no buttons"
      assert_fits_each_screen browser
      token = token_of(server)
      assert_accessible browser
      unlock(browser, token.reverse)
      browser.find("#notice", text: "Wrong token.")
      assert_equal %w[Backtrace Hide], buttons(browser)
      unlock(browser, token)
      act(browser, server)
      assert_fits_each_screen browser
      refute_includes browser.driver.current_url, token
      assert_empty browser.driver.logs.get(:browser).map(&:message).grep_v(%r{/actions/verify.*403})
    end
  end

  # What the page has to say is there before its script runs, with charts of what the server has kept.
  def test_without_a_script
    server = serve("rack", *tcp)
    server.get("/")
    label = /aria-label="Requests a second, last 10 minutes: at most [^"]+, now [^"]+"/
    svg = /<svg [^>]*#{label}><path class="first" d="M[^"]*L[^"]*"/
    page = nil
    wait_for("a chart", within: 60) { (page = ask_page(server, "/")).match?(svg) }
    assert_match(%r{<h1 class="good"[^>]*>serving</h1>}, page)
    charts = page.scan(/<figcaption>([^<]+)/).flatten.map(&:strip)
    assert_equal ["Requests a second", "Status 5xx a second", "Time to the first byte", "Queue", "Memory"], charts
    assert_includes ask_page(server, "/apps/#{server.full_status['apps'][0]['id']}"), "<nav aria-label=\"Pages\">"
    assert_includes ask_page(server, "/apps/4711"), "There is no such application any more."
  end

  def test_what_has_failed_comes_first
    server = serve_apps("good" => WELL, "bad" => "run Sohp.new\n", "slow" => SOURCE)
    wait_for("the failure") { server.full_status["apps"].map { |app| app["phase"] }.sort == %w[failed serving serving] }
    stuck = server.connect.tap { |client| client.send_request("GET", "/sleep/1", { "Host" => "slow.localhost" }) }
    diagnosis = report_of(server).dig("overview", "apps").find { |app| app["name"] == "bad" }.fetch("diagnosis")
    assert_match(/Sohp/, diagnosis["summary"])
    assert_match(/config\.ru:1\z/, diagnosis["place"])
    Browser.open do |browser|
      Screens.show(browser.driver, 1280, false, "light")
      browser.visit page(server)
      browser.find("h1.bad", text: "1 of 3 applications failing")
      browser.find(".failure .cause", text: "Sohp")
      wait_for("the stuck request") { browser.has?("#requests tr[data-key]") }
      assert_operator bottom_of(browser, "#requests"), :<=, Screens::HEIGHT, "above the fold"
      assert_equal %w[bad good slow], texts(browser, "tbody th a"), "what has failed comes first"
      assert_accessible browser
      browser.click(".failure a", text: "Diagnosis of bad")
      browser.find(".failure pre", text: "run Sohp.new")
      assert_accessible browser
    end
  ensure
    stuck&.close
  end

  def test_many_applications
    server = serve_apps((1..12).to_h { |number| ["app#{number}", WELL] })
    Browser.open do |browser|
      browser.visit page(server)
      browser.find("tbody th a", text: "app12")
      assert_equal 12, texts(browser, "tbody th a").length
      refute browser.has?("figure"), "each has its page"
      assert_accessible browser
      browser.click("tbody th a", text: "app7")
      browser.find("figcaption", text: "Requests a second")
      assert_accessible browser
    end
  end

  # Updates keep what a person does: the focus stays, and an open backtrace.
  def test_updates_keep_the_focus
    server = serve(stuck_app, *tcp, *DRAIN)
    begin_requests(server, "/sleep/1")
    Browser.open do |browser|
      browser.visit page(server)
      button = browser.find("#requests button", text: "Backtrace")
      button.send_keys(:enter)
      browser.find("#requests pre", text: "stuck_in_sleep")
      before = browser.text("#requests .age")
      wait_for("an update") { browser.text("#requests .age") != before }
      assert_equal "Hide", browser.driver.switch_to.active_element.text
      assert_includes browser.text("#requests pre"), "stuck_in_sleep"
    end
  end

  def test_limits_in_a_browser
    server = serve(stuck_app, *tcp, *DRAIN, "--cpu-max", "1.5")
    Browser.open do |browser|
      browser.visit page(server)
      browser.find(".facts div", text: "CPU (cpu_max)\n1.5 cores")
      assert_fits_each_screen browser
    end
  end

  def test_hostile_texts_in_a_browser
    server = serve(stuck_app, *tcp, *DRAIN)
    evil = "document.title='owned'"
    begin_requests(server, "/hostile/<img/src=x/onerror=#{evil}>", "/hostile/</script><script>#{evil}</script>",
                   "/hostile/'\"><svg/onload=#{evil}>")
    Browser.open do |browser|
      browser.visit page(server)
      wait_for("the requests") { texts(browser, "#requests td code").length == 3 }
      browser.find("#requests code", text: "<img/src=x/onerror")
      browser.find("#requests code", text: "</script><script>")
      browser.click("#requests button")
      browser.find("#requests pre", text: "<img src=x")
      assert_equal ["Highball", 0, 1, 0], browser.driver.execute_script(<<~JS)
        return [document.title, document.images.length, document.scripts.length, document.querySelectorAll("#requests svg").length];
      JS
      refute_includes browser.text("#requests pre"), "\e"
    end
  end

  private

  # A server of these applications, each at a host name: name => config.ru.
  def serve_apps(apps)
    files = apps.transform_keys { |name| "#{name}/config.ru" }
    entries = apps.keys.map { |name| "[[app]]\npath = '#{name}'\nhosts = ['#{name}.localhost']\n" }
    folder = folder_with(files.merge("highball.toml" => entries.join))
    options = ["-b", "127.0.0.1", "-p", "0", "-e", "production", "-w", "1", *tcp, *DRAIN]
    command = [HighballServer::BINARY, "-c", File.join(folder, "highball.toml"), *options]
    HighballServer.new(folder, command: command).tap do |server|
      @servers << server
      wait_for("the server") { server.port }
      wait_for("its applications", within: 120) { server.full_status["apps"].none? { |app| app["phase"] == "booting" } }
    end
  end

  def ask_page(server, path)
    Net::HTTP.get_response(URI.join(server.full_status["admin"].fetch(0), path)).body.force_encoding("UTF-8")
  end

  def report_of(server) = JSON.parse(ask_page(server, "/overview"))

  def texts(browser, css) = browser.on_one_drawing { browser.driver.find_elements(css: css).map(&:text) }

  # CSS pixels from the top of the page.
  def bottom_of(browser, css)
    browser.driver.execute_script("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", css)
  end

  # At the requests, and the backtrace of one.
  def look(browser)
    browser.find("h1", text: "serving")
    browser.find("#requests code", text: "GET /mutex/1?…")
    browser.find(".doing", text: "waits for a mutex")
    wait_for("the backtrace") { backtrace?(browser) }
  end

  # Asks for it, again if a worker had too little of a busy machine to answer.
  def backtrace?(browser)
    shown = browser.driver.find_elements(css: "#requests pre").find(&:displayed?)&.text
    return true if shown&.include?("stuck_in_sleep")

    asks = shown.nil? || shown.include?("no backtrace") # or hides what it has
    browser.find("#requests tr", text: "/sleep/0").find_element(tag_name: "button").click if asks
    false
  rescue Selenium::WebDriver::Error::StaleElementReferenceError
    false # the page was drawn again meanwhile
  end

  def act(browser, server)
    # The page asks for some seconds, which a busy machine may need for a click.
    wait_for("the order") do
      next true if server.status["workers_wanted"] == 5

      press(browser, "Add a worker?") || press(browser, "+ worker")
      nil
    end
    browser.find("#notice", text: "5 workers from now on")
    wait_for("the worker") { server.status["workers"].length == 5 }
  end

  # Whether there is such a button.
  def press(browser, text)
    browser.on_one_drawing do
      button = browser.driver.find_elements(css: "main button").find { |one| one.displayed? && one.text == text }
      button&.click
      !button.nil?
    end
  end

  def buttons(browser)
    buttons = browser.on_one_drawing do
      browser.driver.find_elements(css: "main button").select(&:displayed?).map(&:text)
    end
    buttons.uniq.sort - ["Show the buttons"]
  end

  def unlock(browser, token)
    browser.fill("#token", token)
    browser.click("button", text: "Show the buttons")
  end

  # The page fits each screen; the block gets each.
  def assert_fits_each_screen(browser)
    Screens.each do |width, phone, scheme|
      Screens.show(browser.driver, width, phone, scheme)
      assert_operator Screens.page_width(browser.driver), :<=, width
      yield if block_given?
    end
    browser.driver.execute_cdp("Emulation.clearDeviceMetricsOverride")
  end

  def assert_accessible(browser) = assert_fits_each_screen(browser) { assert_empty Axe.violations(browser.driver) }
end
