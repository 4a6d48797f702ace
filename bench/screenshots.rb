#!/usr/bin/env ruby
# frozen_string_literal: true

# Pictures of an HTML report as it looks on a phone and on a desk, light and dark:
# `ruby bench/screenshots.rb REPORT.html FOLDER` writes report-{390,1280}-{light,dark}.png into the folder.

require "fileutils"
require_relative "../test/support/browser"

# One report in one browser.
class Screenshots
  WIDTHS = { 390 => true, 1280 => false }.freeze # CSS pixels => whether it is a phone
  SCHEMES = %w[light dark].freeze
  MOST_HEIGHT = 2400 # what lies below is cut off, so that pictures stay small

  def initialize(report, folder)
    @report = File.realpath(report)
    @folder = folder
    FileUtils.mkdir_p(folder)
  end

  def take
    Browser.open do |browser|
      browser.visit "file://#{@report}"
      browser.find "h1"
      browser.driver.execute_cdp("Emulation.setScrollbarsHidden", hidden: true)
      WIDTHS.to_a.product(SCHEMES).each { |(width, phone), scheme| puts picture(browser.driver, width, phone, scheme) }
    end
  end

  private

  def picture(driver, width, phone, scheme)
    driver.execute_cdp("Emulation.setEmulatedMedia",
                       features: [{ name: "prefers-color-scheme", value: scheme }])
    size(driver, width, 800, phone)
    refuse_sideways_scrolling(driver, width)
    height = driver.execute_script("return document.documentElement.scrollHeight")
    size(driver, width, [height, MOST_HEIGHT].min, phone)
    File.join(@folder, "report-#{width}-#{scheme}.png").tap do |file|
      png = driver.execute_cdp("Page.captureScreenshot", format: "png", optimizeForSpeed: false)
      File.binwrite(file, png.fetch("data").unpack1("m"))
    end
  end

  def size(driver, width, height, phone)
    driver.execute_cdp("Emulation.setDeviceMetricsOverride",
                       width: width, height: height, deviceScaleFactor: 1, mobile: phone)
  end

  # A page that is wider than the screen is a mistake that a picture of its left side would hide.
  def refuse_sideways_scrolling(driver, width)
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    abort "The report is #{wide} px wide on a screen of #{width} px" if wide > width
  end
end

abort "Usage: ruby bench/screenshots.rb REPORT.html FOLDER" unless ARGV.size == 2
Screenshots.new(*ARGV).take
