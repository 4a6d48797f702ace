# frozen_string_literal: true

require "tmpdir"
require_relative "../test/support/highball_server"

PAIRS = Integer(ENV.fetch("PAIRS", 12))
TURN = Integer(ENV.fetch("TURN", 5))

# What measurements in turns have in common: small applications, a load by Debian's wrk, and what stands in the middle.
module Turns
  HELLO = "run ->(_) { [200, { 'content-type' => 'text/plain' }, ['hello']] }\n"

  private

  # A folder with this application.
  def app_of(text) = Dir.mktmpdir.tap { |folder| File.write(File.join(folder, "config.ru"), text) }

  # What wrk says of a load on `/`; its requests are as it makes them, or as this script (of Lua) does.
  def wrk(port, script = "", connections: 8, seconds: TURN)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "requests.lua")
      File.write(path, script)
      options = ["-t", "1", "-c", connections.to_s, "-d", "#{seconds}s", "--latency", "-s", path]
      IO.popen(["wrk", *options, "http://127.0.0.1:#{port}/"], &:read)
    end
  end

  def requests_in(text) = Integer(text[/(\d+) requests in/, 1])

  def at(values, share)
    sorted = values.sort
    place = (sorted.length - 1) * share
    below, above = sorted.values_at(place.floor, place.ceil)
    below + ((above - below) * (place - place.floor))
  end

  def middle(values) = at(values, 0.5)
end
