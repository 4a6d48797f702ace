#!/usr/bin/env ruby
# frozen_string_literal: true

# Takes the pictures of docs/profiling.md: `ruby test/support/profile_picture.rb FOLDER [EXAMPLE [PATH…]]` profiles an
# example under load, and writes profile-{light,dark}.png into the folder. pngquant makes them small, if it is there.

require "tmpdir"
require_relative "browser"
require_relative "highball_server"
require_relative "screens"

SECONDS = 10
MOST_HEIGHT = 900
PATHS = %w[/ /].freeze

folder = ARGV.fetch(0) { abort "Usage: ruby test/support/profile_picture.rb FOLDER [EXAMPLE [PATH…]]" }
example, *paths = ARGV.drop(1)
paths = PATHS if paths.empty?
server = HighballServer.start(example || "blog", workers: 2, threads: 3)
Dir.mktmpdir do |place|
  page = File.join(place, "profile.html")
  ended = false
  clients = (paths * 2).map { |path| Thread.new { server.get(path) until ended } }
  puts HighballServer.run("profile", "--seconds", SECONDS.to_s, "--output", page, *server.which, within: 60).first
  ended = true
  clients.each(&:join)
  Browser.open do |browser|
    browser.visit "file://#{page}"
    browser.find "#graph button"
    browser.driver.execute_cdp("Emulation.setScrollbarsHidden", hidden: true)
    Screens::SCHEMES.each do |scheme|
      Screens.show_whole(browser.driver, 1280, false, scheme, MOST_HEIGHT)
      file = File.join(folder, "profile-#{scheme}.png")
      Screens.write(browser.driver, file)
      Screens.shrink(file)
    end
  end
end
server.finish
