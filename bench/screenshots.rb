#!/usr/bin/env ruby
# frozen_string_literal: true

# Pictures of an HTML report as it looks on a phone and on a desk, light and dark:
# `ruby bench/screenshots.rb REPORT.html FOLDER` writes report-{390,1280}-{light,dark}.png into the folder, and the
# chart of the schemes of 2006 alone, where the report has it: origins-{light,dark}.png.

require "fileutils"
require_relative "../test/support/browser"

# One report in one browser.
class Screenshots
  WIDTHS = { 390 => true, 1280 => false }.freeze # CSS pixels => whether it is a phone
  SCHEMES = %w[light dark].freeze
  MOST_HEIGHT = 2400 # what lies below is cut off, so that pictures stay small
  ORIGINS = "#origins .chart"
  MARGIN = 8 # CSS pixels around what is cut out

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
      SCHEMES.each { |scheme| puts origins(browser.driver, scheme) } if browser.has?(ORIGINS)
    end
  end

  private

  def picture(driver, width, phone, scheme)
    show(driver, width, phone, scheme)
    refuse_sideways_scrolling(driver, width)
    height = driver.execute_script("return document.documentElement.scrollHeight")
    size(driver, width, [height, MOST_HEIGHT].min, phone)
    write(driver, "report-#{width}-#{scheme}.png")
  end

  # The first of its charts, as on a desk.
  def origins(driver, scheme)
    show(driver, 1280, false, scheme)
    x, y, width, height = driver.execute_script(<<~SCRIPT, ORIGINS)
      const box = document.querySelector(arguments[0]).getBoundingClientRect();
      return [box.x + window.scrollX, box.y + window.scrollY, box.width, box.height];
    SCRIPT
    clip = { x: x - MARGIN, y: y - MARGIN, width: width + (2 * MARGIN), height: height + (2 * MARGIN), scale: 1 }
    write(driver, "origins-#{scheme}.png", clip: clip, captureBeyondViewport: true)
  end

  def show(driver, width, phone, scheme)
    driver.execute_cdp("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    size(driver, width, 800, phone)
  end

  def write(driver, name, **options)
    png = driver.execute_cdp("Page.captureScreenshot", format: "png", optimizeForSpeed: false, **options)
    File.join(@folder, name).tap { |file| File.binwrite(file, png.fetch("data").unpack1("m")) }
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
