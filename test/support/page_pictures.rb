#!/usr/bin/env ruby
# frozen_string_literal: true

# Pictures of what a browser shows of applications that do not boot, for the docs:
# `ruby test/support/page_pictures.rb FOLDER` writes NAME-{390,1280}-{light,dark}.png into the folder.

require "fileutils"
require "tmpdir"
require_relative "browser"
require_relative "highball_server"

# Five applications in one browser.
class PagePictures
  WIDTHS = { 390 => true, 1280 => false }.freeze # CSS pixels => whether it is a phone
  SCHEMES = %w[light dark].freeze
  MOST_HEIGHT = 1600
  WELL = "run ->(_env) { [200, {}, [\"it runs\"]] }\n"
  APPS = {
    "missing-gem" => { "config.ru" => WELL,
                       "Gemfile" => "source \"https://rubygems.org\"\n\ngem \"rack\"\ngem \"nokogirl\"\n" },
    "syntax-error" => { "config.ru" => "require_relative \"app\"\nrun Shop.new\n",
                        "app.rb" => "class Shop\n  PRICES = { tea: 3, coffee: 4 }\n\n  def call(env)\n    drink = " \
                                    "env[\"PATH_INFO\"].delete(\"/\").to_sym\n    [200, {}, [PRICES.fetch(drink, " \
                                    "\"nothing\".to_s]]\n  end\nend\n" },
    "missing-constant" => { "config.ru" => "require_relative \"app\"\n\nrun Sohp.new\n",
                            "app.rb" => "class Shop\nend\n" },
    "service-down" => { "config.ru" => "require \"socket\"\n\nwarn \"connecting to the cache\"\n" \
                                       "CACHE = TCPSocket.new(\"127.0.0.1\", 6379)\n\n#{WELL}" },
    "boot-timeout" => { "config.ru" => "require_relative \"inventory\"\n\n#{WELL}",
                        "inventory.rb" => "# Waits for the warehouse.\nmodule Inventory\n  def self.load\n    " \
                                          "sleep 1 until File.exist?(\"ready\")\n  end\nend\n\nInventory.load\n" }
  }.freeze

  def initialize(folder)
    @folder = folder
    FileUtils.mkdir_p(folder)
  end

  def take
    Browser.open do |browser|
      browser.driver.execute_cdp("Emulation.setScrollbarsHidden", hidden: true)
      APPS.each { |name, files| page(browser, name, files) }
    end
  end

  private

  def page(browser, name, files)
    Dir.mktmpdir do |folder|
      app = File.join(folder, "shop")
      files.each do |file, content|
        FileUtils.mkdir_p(app)
        File.write(File.join(app, file), content)
      end
      server = HighballServer.new(app, "--boot-timeout", "4s", environment: "development")
      Deadline.wait("the page of #{name}", within: 30) { server.port && server.log.include?("mend it") }
      browser.visit server.url
      browser.find ".remedy"
      WIDTHS.to_a.product(SCHEMES).each { |(width, phone), scheme| picture(browser.driver, name, width, phone, scheme) }
    ensure
      server&.finish
    end
  end

  def picture(driver, name, width, phone, scheme)
    driver.execute_cdp("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    size(driver, width, 800, phone)
    wide, height = %w[scrollWidth scrollHeight].map do |size|
      driver.execute_script("return document.documentElement.#{size}")
    end
    abort "The page of #{name} is #{wide} px wide on a screen of #{width} px" if wide > width
    size(driver, width, [height, MOST_HEIGHT].min, phone)
    png = driver.execute_cdp("Page.captureScreenshot", format: "png", optimizeForSpeed: false)
    File.binwrite(File.join(@folder, "#{name}-#{width}-#{scheme}.png"), png.fetch("data").unpack1("m"))
  end

  def size(driver, width, height, phone)
    driver.execute_cdp("Emulation.setDeviceMetricsOverride",
                       width: width, height: height, deviceScaleFactor: 1, mobile: phone)
  end
end

abort "Usage: ruby test/support/page_pictures.rb FOLDER" unless ARGV.size == 1
PagePictures.new(*ARGV).take
