#!/usr/bin/env ruby
# frozen_string_literal: true

# Takes screenshots of the dashboard and of `highball top` for the docs, and to look at:
# `ruby test/support/screen_pictures.rb FOLDER [healthy|failing|many…]` writes
# dashboard-STATE-{390,1280}-{light,dark}.png, and top-STATE-{80x24,100x30,120x40,200x50}.{txt,svg}, into the folder.
# pngquant makes pictures small, if it is installed.

require "fileutils"
require_relative "browser"
require_relative "highball_server"
require_relative "screens"
require_relative "terminal_film"
require_relative "tmux"

# Shops in several states, in one browser and in terminals.
class ScreenPictures
  MOST_HEIGHT = { 390 => 2000, 1280 => 1400 }.freeze
  FOLDER = "/srv/shops"
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
        when "/basket" then return [500, {}, ["alas"]]
        else sleep(rand * rand * 0.06)
        end
        [200, {}, ["ok"]]
      end

      def yearly_report = loop { Array.new(1000) { |n| n.to_s }.sort }
      def wait_for_the_bank = BANK.first.gets
      def stock = LOCK.synchronize { 1 }
    end

    run Shop.new
  RUBY
  BROKEN = "require \"nokogirl\"\nrun Shop.new\n"
  WELL = "run ->(_env) { [200, {}, [\"it runs\"]] }\n"
  STUCK = ["/reports/2026?format=pdf", "/payments/4711", "/orders/17?step=stock", "/payments/4712"].freeze
  STATES = {
    "healthy" => [{ "shop" => SHOP }, ["--threads", "3"]],
    "failing" => [{ "shop" => SHOP, "stock" => BROKEN, "wiki" => WELL }, ["--threads", "5"]],
    "many" => [{ "shop" => SHOP, "stock" => BROKEN, **(1..28).to_h { |number| ["blog-#{number}", WELL] } }, []]
  }.freeze
  LOOKS = 100 # seconds of load, for the charts
  SIZES = [[80, 24], [100, 30], [120, 40], [200, 50]].freeze

  def initialize(folder, states)
    @folder = folder
    @states = states.empty? ? STATES.keys : states
    FileUtils.mkdir_p(folder)
  end

  def take
    Browser.open do |browser|
      browser.driver.execute_cdp("Emulation.setScrollbarsHidden", hidden: true)
      STATES.slice(*@states).each { |state, (apps, options)| pictures(browser, state, apps, options) }
    end
  end

  private

  def pictures(browser, state, apps, options)
    server = serve(apps, options)
    under_load(server) do
      dashboard(browser, server, state)
      SIZES.each { |columns, rows| top(server, "top-#{state}-#{columns}x#{rows}", columns, rows) }
    end
  ensure
    server&.finish
    FileUtils.rm_rf(FOLDER) if server
  end

  def serve(apps, options)
    Dir.mkdir(FOLDER) # fails if the folder exists, so that no other one is changed
    entries = apps.map do |name, source|
      FileUtils.mkdir_p(File.join(FOLDER, name))
      File.write(File.join(FOLDER, name, "config.ru"), source)
      workers = name == "shop" ? "workers = 4" : "workers = 1"
      "[[app]]\npath = '#{name}'\nhosts = ['#{name}.localhost']\n#{workers}\n"
    end
    File.write(config = File.join(FOLDER, "highball.toml"), entries.join)
    command = [HighballServer::BINARY, "-c", config, "-b", "127.0.0.1", "-p", "0", "-e", "production",
               "--admin", "127.0.0.1:0", "--admin-actions", "--request-timeout", "none", *options]
    server = HighballServer.new(FOLDER, command: command)
    Deadline.wait("the server", within: 120) do
      server.port && server.full_status["apps"].none? { |app| app["phase"] == "booting" }
    end
    server
  end

  def under_load(server)
    going = true
    clients = STUCK.map do |target|
      server.connect.tap { |client| client.send_request("GET", target, { "Host" => "shop.localhost" }) }
    end
    load = Array.new(2) { Thread.new { ask(server) while going } }
    yield
  ensure
    going = false
    load&.each(&:join)
    clients&.each(&:close)
  end

  def ask(server)
    path = rand < 0.02 ? "/basket" : "/products/#{rand(100)}"
    server.get(path, { "Host" => "shop.localhost" })
    sleep(rand * 0.05)
  end

  def dashboard(browser, server, state)
    browser.visit "#{server.full_status['admin'].fetch(0)}/"
    browser.fill "#token", HighballServer.run("top", "--token", "--port", server.port.to_s)[0].chomp
    browser.click "button", text: "Show the buttons"
    sleep LOOKS
    if state == "healthy"
      browser.click "#requests button", text: "Backtrace"
      browser.find "#requests pre", text: "yearly_report"
    end
    screens(browser, "dashboard-#{state}")
  end

  def screens(browser, name)
    Screens.each do |width, phone, scheme|
      Screens.show_whole(browser.driver, width, phone, scheme, MOST_HEIGHT.fetch(width))
      write(browser, File.join(@folder, "#{name}-#{width}-#{scheme}.png"))
    end
  end

  # What tmux shows, as text and as a picture.
  def top(server, name, columns, rows)
    Tmux.open(HighballServer::BINARY, "top", "--port", server.port.to_s, columns: columns, rows: rows) do |tmux|
      tmux.see(%r{GET /reports})
      sleep 12 # for rates, and bars
      File.write(File.join(@folder, "#{name}.txt"), tmux.screen)
      film = TerminalFilm.new(columns, rows)
      film.add(0, "", tmux.screen(colours: true).lines(chomp: true))
      File.write(File.join(@folder, "#{name}.svg"), film.svg(1, still: 0, title: "highball top"))
    end
  end

  def write(browser, file)
    Screens.write(browser.driver, file)
    Screens.shrink(file)
  end
end

folder, *states = ARGV
abort "Usage: ruby test/support/screen_pictures.rb FOLDER [healthy|failing|many…]" unless folder
ScreenPictures.new(folder, states).take
