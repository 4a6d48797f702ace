#!/usr/bin/env ruby
# frozen_string_literal: true

# Takes screenshots of the dashboard for the docs: `ruby test/support/dashboard_pictures.rb FOLDER` writes
# dashboard-{390,1280}-{light,dark}.png into the folder. pngquant makes them small, if it is installed.

require "fileutils"
require_relative "browser"
require_relative "highball_server"
require_relative "screens"

# A shop in which some requests take long, in one browser.
class DashboardPictures
  MOST_HEIGHT = { 390 => 1500, 1280 => 1000 }.freeze
  FOLDER = "/srv/shop"
  SHOP = <<~'RUBY'
    require "socket"

    # What a shop does.
    class Shop
      LOCK = Mutex.new.tap(&:lock)
      BANK = Socket.pair(:UNIX, :STREAM)

      def call(env)
        case env["PATH_INFO"]
        when %r{\A/reports} then yearly_report
        when %r{\A/payments} then wait_for_the_bank
        when %r{\A/orders} then stock
        else sleep(rand * rand * 0.06)
        end
        [200, {}, ["ok"]]
      end

      def yearly_report = loop { Array.new(1000) { |n| n.to_s }.sort }
      def wait_for_the_bank = BANK.first.gets
      def stock = LOCK.synchronize { 1 }
    end
  RUBY
  STUCK = ["/reports/2026?format=pdf", "/payments/4711", "/orders/17?step=stock", "/payments/4712"].freeze
  LOOKS = 25 # seconds of load, for the line of times

  def initialize(folder)
    @folder = folder
    FileUtils.mkdir_p(folder)
  end

  def take
    Dir.mkdir(FOLDER) # fails if the folder exists, so that no other one is changed
    File.write(File.join(FOLDER, "config.ru"), "require_relative \"shop\"\nrun Shop.new\n")
    File.write(File.join(FOLDER, "shop.rb"), SHOP)
    server = HighballServer.start(FOLDER, "--admin", "127.0.0.1:0", "--admin-actions", workers: 4, threads: 3)
    under_load(server) { Browser.open { |browser| pictures(browser, server) } }
  ensure
    server&.finish
    FileUtils.rm_rf(FOLDER) if server
  end

  private

  def under_load(server)
    going = true
    clients = STUCK.map { |target| server.connect.tap { |client| client.send_request("GET", target) } }
    load = Array.new(2) { Thread.new { server.get("/products/#{rand(100)}").then { sleep rand * 0.05 } while going } }
    yield
  ensure
    going = false
    load&.each(&:join)
    clients&.each(&:close)
  end

  def pictures(browser, server)
    driver = browser.driver
    driver.execute_cdp("Emulation.setScrollbarsHidden", hidden: true)
    browser.visit "#{server.status['admin'].fetch(0)}/"
    browser.fill "#token", HighballServer.run("top", "--token", "--port", server.port.to_s)[0].chomp
    browser.click "button", text: "Show the buttons"
    sleep LOOKS
    browser.click "button", text: "Backtrace"
    browser.find "pre", text: "yearly_report"
    Screens.each { |width, phone, scheme| picture(driver, width, phone, scheme) }
    print HighballServer.run("top", "--port", server.port.to_s)[0]
  end

  def picture(driver, width, phone, scheme)
    Screens.show_whole(driver, width, phone, scheme, MOST_HEIGHT.fetch(width))
    file = File.join(@folder, "dashboard-#{width}-#{scheme}.png")
    Screens.write(driver, file)
    Screens.shrink(file)
  end
end

abort "Usage: ruby test/support/dashboard_pictures.rb FOLDER" unless ARGV.size == 1
DashboardPictures.new(*ARGV).take
