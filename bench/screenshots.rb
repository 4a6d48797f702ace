#!/usr/bin/env ruby
# frozen_string_literal: true

# Pictures of an HTML report as it looks on a phone and on a desk, light and dark:
# `ruby bench/screenshots.rb REPORT.html FOLDER` writes report-{390,1280}-{light,dark}.png into the folder.

require "fileutils"
require_relative "../test/support/browser"
require_relative "../test/support/screens"

# One report in one browser.
class Screenshots
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
      Screens.each { |width, phone, scheme| puts picture(browser.driver, width, phone, scheme) }
    end
  end

  private

  def picture(driver, width, phone, scheme)
    Screens.show_whole(driver, width, phone, scheme, MOST_HEIGHT)
    File.join(@folder, "report-#{width}-#{scheme}.png").tap { |file| Screens.write(driver, file) }
  end
end

abort "Usage: ruby bench/screenshots.rb REPORT.html FOLDER" unless ARGV.size == 2
Screenshots.new(*ARGV).take
