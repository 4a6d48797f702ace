#!/usr/bin/env ruby
# frozen_string_literal: true

# Pictures of an HTML report as it looks on a phone and on a desk, light and dark:
# `ruby bench/screenshots.rb REPORT.html FOLDER` writes report-{390,1280}-{light,dark}.png into the folder, and the
# chart of the schemes of 2006 alone, where the report has it: origins-{light,dark}.png.

require "fileutils"
require_relative "../test/support/browser"
require_relative "../test/support/screens"

# One report in one browser.
class Screenshots
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
      Screens.each { |width, phone, scheme| puts picture(browser.driver, width, phone, scheme) }
      Screens::SCHEMES.each { |scheme| puts origins(browser.driver, scheme) } if browser.has?(ORIGINS)
    end
  end

  private

  def picture(driver, width, phone, scheme)
    Screens.show_whole(driver, width, phone, scheme, MOST_HEIGHT)
    write(driver, "report-#{width}-#{scheme}.png")
  end

  # The first of its charts, as on a desk.
  def origins(driver, scheme)
    Screens.show(driver, 1280, false, scheme)
    x, y, width, height = driver.execute_script(<<~SCRIPT, ORIGINS)
      const box = document.querySelector(arguments[0]).getBoundingClientRect();
      return [box.x + window.scrollX, box.y + window.scrollY, box.width, box.height];
    SCRIPT
    clip = { x: x - MARGIN, y: y - MARGIN, width: width + (2 * MARGIN), height: height + (2 * MARGIN), scale: 1 }
    write(driver, "origins-#{scheme}.png", clip: clip, captureBeyondViewport: true)
  end

  def write(driver, name, **options)
    File.join(@folder, name).tap { |file| Screens.write(driver, file, **options) }
  end
end

abort "Usage: ruby bench/screenshots.rb REPORT.html FOLDER" unless ARGV.size == 2
Screenshots.new(*ARGV).take
