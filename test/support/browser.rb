# frozen_string_literal: true

require "selenium-webdriver"
require "tmpdir"
require_relative "deadline"

# Headless Chromium with an empty profile, used as a person would: by the visible text of pages.
class Browser
  WITHIN = Deadline::WITHIN # for anything to show up
  SWITCHES = %w[--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run
                --disable-background-networking --disable-component-update --disable-sync
                --disable-default-apps --window-size=1200,1000].freeze

  # Yields a browser that has kept nothing of earlier visits. Each start takes seconds, so the tests of a process share
  # a browser. With `home`, it is a new one: the user's home folder, where authorities may be that the browser trusts.
  def self.open(home: nil)
    browser = (@shared unless home) || new(home).tap { quit_at_the_end unless home }
    @shared = nil unless home
    yield browser
    @shared = browser.forget unless home
  ensure
    browser&.quit unless browser == @shared
  end

  # To be called when there is a browser: what was registered last runs first, and then its driver still runs.
  def self.quit_at_the_end
    owner = Process.pid
    at_exit { @shared&.quit if Process.pid == owner }
  end
  private_class_method :quit_at_the_end

  attr_reader :driver, :downloads

  def initialize(home = nil)
    @profile = Dir.mktmpdir("highball-browser")
    @downloads = File.join(@profile, "downloads")
    Dir.mkdir(@downloads)
    @driver = at_home(home) { Selenium::WebDriver.for(:chrome, options: options, service: service) }
  rescue StandardError
    FileUtils.rm_rf(@profile)
    raise
  end

  def visit(url)
    driver.navigate.to(url)
  end

  # The first element that matches and is shown; waits for it.
  def find(css, text: nil)
    Deadline.wait("#{css} #{text}", within: WITHIN) do
      driver.find_elements(css: css).find { |element| element.displayed? && (text.nil? || element.text.include?(text)) }
    rescue Selenium::WebDriver::Error::StaleElementReferenceError
      nil
    rescue Selenium::WebDriver::Error::UnknownError => e
      # The same, if the page changes while the driver asks for the element's text.
      raise unless e.message.include?("does not belong to the document")
    end
  rescue Deadline::Missed => e
    raise Deadline::Missed, "#{e.message} at #{driver.current_url}:\n#{driver.find_element(css: 'body').text[0, 2000]}"
  end

  def has?(css)
    driver.find_elements(css: css).any?
  end

  # Replaces the content of a field.
  def fill(css, text)
    field = find(css)
    field.clear
    field.send_keys(text)
  end

  # Puts a file into a file field (which pages like to hide behind something prettier).
  def attach(css, path)
    Deadline.wait(css, within: WITHIN) { has?(css) }
    driver.find_element(css: css).send_keys(path)
  end

  def click(css, text: nil)
    on_one_drawing { find(css, text: text).click }
  end

  # The text of the first element that matches and is shown; waits for it.
  def text(css)
    on_one_drawing { find(css).text }
  end

  # What the block returns. It is called again if the page was drawn again meanwhile, so that its elements are gone.
  def on_one_drawing
    Deadline.wait("the page to stay as it is", within: WITHIN) do
      return yield
    rescue Selenium::WebDriver::Error::StaleElementReferenceError
      nil
    end
  end

  # Waits until the page shows a text.
  def see(text)
    find("body", text: text)
  end

  # Waits until a file of that size has been downloaded whole: its path.
  def downloaded(name, bytes, within: 30)
    path = File.join(downloads, name)
    Deadline.wait("download of #{name}; there is #{Dir.children(downloads)}", within: within) do
      File.size?(path) == bytes
    end
    path
  end

  # Leaves the page and the screen, and all that pages have stored.
  def forget
    driver.navigate.to("about:blank")
    driver.execute_cdp("Network.clearBrowserCookies")
    driver.execute_cdp("Emulation.clearDeviceMetricsOverride")
    driver.execute_cdp("Emulation.setEmulatedMedia", features: [])
    driver.logs.get(:browser)
    FileUtils.rm_rf(Dir[File.join(downloads, "*")])
    self
  end

  def quit
    driver&.quit
  ensure
    FileUtils.rm_rf(@profile)
  end

  private

  # The browser inherits the environment of this process.
  def at_home(home)
    before = ENV.to_h.slice("HOME", "XDG_DATA_HOME")
    ENV.update("HOME" => home, "XDG_DATA_HOME" => nil) if home
    yield
  ensure
    ENV.update({ "HOME" => nil, "XDG_DATA_HOME" => nil }.merge(before))
  end

  def options
    options = Selenium::WebDriver::Chrome::Options.new
    SWITCHES.each { |switch| options.add_argument(switch) }
    options.add_argument("--user-data-dir=#{File.join(@profile, 'profile')}")
    options.add_preference("download.default_directory", @downloads)
    options.add_preference("download.prompt_for_download", false)
    options
  end

  # The driver from the browser's package; nothing is downloaded.
  def service
    Selenium::WebDriver::Service.chrome(path: "/usr/bin/chromedriver")
  end
end
