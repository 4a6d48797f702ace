# frozen_string_literal: true

# The screens on which pages are looked at: a phone and a desk, light and dark. `driver`: Selenium's, of Chromium.
module Screens
  WIDTHS = { 390 => true, 1280 => false }.freeze # CSS pixels => whether it is a phone
  SCHEMES = %w[light dark].freeze
  HEIGHT = 800 # CSS pixels

  module_function

  # Calls the block with width, whether it is a phone, and scheme.
  def each
    WIDTHS.to_a.product(SCHEMES).each { |(width, phone), scheme| yield width, phone, scheme }
  end

  def show(driver, width, phone, scheme)
    driver.execute_cdp("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    size(driver, width, HEIGHT, phone)
  end

  def size(driver, width, height, phone)
    driver.execute_cdp("Emulation.setDeviceMetricsOverride",
                       width: width, height: height, deviceScaleFactor: 1, mobile: phone)
  end

  def page_width(driver) = driver.execute_script("return document.documentElement.scrollWidth")

  # Shows the page, and makes the screen as high as that is, up to a limit. A page that is wider than the screen is a
  # mistake that a picture of its left side would hide.
  def show_whole(driver, width, phone, scheme, most_height)
    show(driver, width, phone, scheme)
    wide = page_width(driver)
    abort "The page #{driver.current_url} is #{wide} px wide on a screen of #{width} px" if wide > width
    height = driver.execute_script("return document.documentElement.scrollHeight")
    size(driver, width, [height, most_height].min, phone)
    driver.execute_script("window.scrollTo(0, 0)")
  end

  # Writes a picture of what is shown.
  def write(driver, file, **options)
    png = driver.execute_cdp("Page.captureScreenshot", format: "png", optimizeForSpeed: false, **options)
    File.binwrite(file, png.fetch("data").unpack1("m"))
  end

  # Makes it small, if pngquant is installed.
  def shrink(file) = system("pngquant", "--force", "--skip-if-larger", "--strip", "--output", file, "64", file)
end
