# frozen_string_literal: true

require "test_helper"

# Debian's driver of Chromium. (Rails 7.2's own `driven_by :selenium` needs a later Selenium than Debian 13 has.)
Capybara.register_driver :chromium do |app|
  switches = %w[--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking
                --no-first-run --window-size=1400,1400]
  Capybara::Selenium::Driver.new(app, browser: :chrome,
                                      options: Selenium::WebDriver::Chrome::Options.new(args: switches),
                                      service: Selenium::WebDriver::Service.chrome(path: "/usr/bin/chromedriver"))
end

class ApplicationSystemTestCase < ActionDispatch::SystemTestCase
  driven_by :chromium
end
