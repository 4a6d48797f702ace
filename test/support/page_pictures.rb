#!/usr/bin/env ruby
# frozen_string_literal: true

# Takes screenshots for the docs: the pages of applications that do not boot or do not answer, the list of many, and the
# site's start page and a page of it (`just site` makes it).
# `ruby test/support/page_pictures.rb FOLDER [NAME…]` writes NAME-{390,1280}-{light,dark}.png into the folder. pngquant
# makes them small, if it is installed.

require "fileutils"
require_relative "browser"
require_relative "highball_server"
require_relative "screens"
require_relative "site_server"

# Applications with one mistake each, in one browser.
class PagePictures
  MOST_HEIGHT = 1600
  BOOTS_WITHIN = "10s" # of the application that is to hang; the others have the time that they need
  # The folder of the applications, which the pages name.
  SHOP = "/srv/shop"
  MANY = "/srv/apps"
  WELL = "run ->(_env) { [200, {}, [\"it runs\"]] }\n"
  APPS = {
    "missing-gem" => { "config.ru" => WELL,
                       "Gemfile" => "gem \"rack\"\ngem \"nokogirl\"\n" },
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

  # Applications that boot, and the paths of the requests.
  RUNNING = {
    "exception" => ["/prices?of=milk&token=4711-0815", {
      "config.ru" => "require_relative \"shop\"\nrun Shop.new\n",
      "shop.rb" => <<~RUBY,
        require_relative "price_list"

        # Tells what drinks cost.
        class Shop
          def call(env)
            drink = Rack::Utils.parse_query(env["QUERY_STRING"])["of"]
            [200, {}, [PriceList.new.of(drink)]]
          end
        end
      RUBY
      "price_list.rb" => <<~RUBY
        class PriceList
          PRICES = { "tea" => 3, "coffee" => 4 }.freeze

          def of(drink)
            "\#{PRICES.fetch(drink)} crowns"
          rescue KeyError
            raise ArgumentError, "there is no \#{drink} here"
          end
        end
      RUBY
    }],
    "worker-crashed" => ["/report", { "config.ru" => <<~RUBY }],
      run lambda { |env|
        Process.kill(:KILL, Process.pid).then { sleep } if env["PATH_INFO"] == "/report"
        [200, {}, []]
      }
    RUBY
    "request-timeout" => ["/stock", {
      "config.ru" => "require_relative \"warehouse\"\n\nrun ->(_env) { [200, {}, [Warehouse.new.stock]] }\n",
      "warehouse.rb" => <<~RUBY
        require "socket"

        # Asks how much there is.
        class Warehouse
          def stock
            Socket.pair(:UNIX, :STREAM).first.gets
          end
        end
      RUBY
    }]
  }.freeze

  # Applications of one server, and the state of each in the list: some get a request before.
  LISTED = {
    "blog" => ["serving", { "config.ru" => WELL }],
    "handbook" => ["serving", { "index.html" => "<h1>Handbook" }],
    "shop" => ["failed", APPS["syntax-error"]],
    "stock" => ["booting", { "config.ru" => "sleep 1 until File.exist?(\"ready\")\n#{WELL}" }],
    "wiki" => ["asleep", { "config.ru" => WELL }]
  }.freeze

  # Pages of the site.
  SITE = File.join(HighballServer::ROOT, "target/site")
  PAGES = { "site" => "index.html", "site-page" => "diagnosis.html" }.freeze

  def initialize(folder, names = [])
    @folder = folder
    @names = names
    FileUtils.mkdir_p(folder)
  end

  def take
    Browser.open do |browser|
      browser.driver.execute_cdp("Emulation.setScrollbarsHidden", hidden: true)
      wanted(APPS).each { |name, files| page(browser, name, files, "/") { |server| server.log.include?("fix it") } }
      wanted(RUNNING).each do |name, (path, files)|
        page(browser, name, files, path) { |server| server.log.include?("serving on") }
      end
      list(browser) if @names.empty? || @names.include?("list")
      SiteServer.run(SITE) { |address| site(browser, address) } if wanted(PAGES).any?
    end
  end

  private

  def wanted(apps) = @names.empty? ? apps : apps.slice(*@names)

  # Pictures of this application's page at this path, once the block returns true.
  def page(browser, name, files, path, &such)
    fill(SHOP, files)
    limits = ["--request-timeout", "2s", *(["--boot-timeout", BOOTS_WITHIN] if name == "boot-timeout")]
    server = HighballServer.new(SHOP, *limits, environment: "development")
    Deadline.wait("the page of #{name}", within: 60) { server.port && such.call(server) }
    browser.visit server.url(path)
    browser.find ".copy"
    pictures(browser.driver, name)
  ensure
    server&.finish
    FileUtils.rm_rf(SHOP) if server
  end

  def site(browser, address)
    wanted(PAGES).each do |name, page|
      pictures(browser.driver, name) { SiteServer.visit(browser, "#{address}/#{page}") }
    end
  end

  # Pictures of the list of many applications.
  def list(browser)
    Dir.mkdir(MANY)
    folders = LISTED.map { |name, (_, files)| File.join(MANY, name).tap { |folder| fill(folder, files) } }
    server = HighballServer.new(MANY, command: [HighballServer::BINARY, *folders], env: { "PORT" => "3000" })
    Deadline.wait("the server", within: 60) { server.log.include?("serving on") }
    LISTED.each { |name, (state, _)| ask_for(server, name) unless state == "asleep" }
    Deadline.wait("their states", within: 60) do
      server.full_status["apps"].to_h { |app| app.values_at("name", "phase") } == LISTED.transform_values(&:first)
    end
    browser.visit server.url(host: "localhost")
    browser.find "li"
    pictures(browser.driver, "list")
  ensure
    server&.finish
    FileUtils.rm_rf(MANY) if server
  end

  # Sends a request to an application, and does not wait for the answer.
  def ask_for(server, name)
    server.connect { |connection| connection.send_request("GET", "/", { "Host" => "#{name}.localhost" }) }
  end

  def fill(folder, files)
    Dir.mkdir(folder) # fails if the folder exists, so that no other one is changed
    files.each { |file, content| File.write(File.join(folder, file), content) }
  end

  # The block shows the page again.
  def pictures(driver, name)
    Screens.each do |width, phone, scheme|
      Screens.show(driver, width, phone, scheme)
      yield if block_given?
      Screens.show_whole(driver, width, phone, scheme, MOST_HEIGHT)
      file = File.join(@folder, "#{name}-#{width}-#{scheme}.png")
      Screens.write(driver, file)
      Screens.shrink(file)
    end
  end
end

folder, *names = ARGV
abort "Usage: ruby test/support/page_pictures.rb FOLDER [NAME…]" unless folder
PagePictures.new(folder, names).take
