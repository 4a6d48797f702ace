# frozen_string_literal: true

require "fileutils"
require "json"
require "minitest/autorun"
require "socket"
require "tmpdir"
require "highball/hub_address"

# How a process finds the hub of its application, at the control sockets of servers.
class HubAddressTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("highball-control")
    @app = File.realpath(Dir.mktmpdir("highball-app"))
    @env = ENV.to_h.slice("HIGHBALL_CONTROL", "HIGHBALL_HUB")
    ENV.update("HIGHBALL_CONTROL" => @folder, "HIGHBALL_HUB" => nil)
    @servers = []
  end

  def teardown
    @servers.each(&:close)
    @threads&.each { |thread| thread.kill.join }
    ENV.update({ "HIGHBALL_CONTROL" => nil, "HIGHBALL_HUB" => nil }.merge(@env))
    [@folder, @app].each { |path| FileUtils.rm_rf(path) }
  end

  def test_the_newest_server_of_the_application_comes_first
    serve("1.sock", "old", made: 20)
    serve("2.sock", "new", made: 10)
    serve("3.sock", "another application's", app: @folder)
    assert_equal %w[new old], addresses
    ENV["HIGHBALL_HUB"] = "own"
    assert_equal %w[own new old], addresses
  end

  # The old server has no hub any more when the new one has its control socket.
  def test_a_server_that_takes_over_meanwhile_is_found
    serve("1.sock", "old", made: 10) { serve("2.sock", "new") }
    assert_equal %w[old new], addresses
  end

  def test_the_socket_of_a_server_that_ends_meanwhile_keeps_nothing_back
    serve("1.sock", "old", made: 10)
    serve("2.sock", "new")
    File.symlink("gone", File.join(@folder, "0.sock")) # as if it went when it had been listed
    assert_equal %w[new old], addresses
  end

  def test_one_socket_that_is_named
    ENV["HIGHBALL_CONTROL"] = File.join(@folder, "1.sock")
    assert_empty addresses
    serve("1.sock", "this")
    serve("2.sock", "another")
    assert_equal %w[this], addresses
  end

  private

  def addresses = Dir.chdir(@app) { Highball::HubAddress.all.to_a }

  # Serves one or more questions. `made`: how long ago, in seconds. The block runs before the first answer.
  def serve(name, address, made: 0, app: @app, &before)
    path = File.join(@folder, name)
    @servers << (server = UNIXServer.new(path))
    time = Time.now - made
    File.utime(time, time, path)
    (@threads ||= []) << Thread.new do
      loop { answer(server.accept, address, app, before.tap { before = nil }) }
    rescue IOError
      nil # the test is over
    end
  end

  def answer(client, address, app, before)
    client.gets
    before&.call
    client.write(JSON.generate(apps: [{ folder: app, address: address }]))
    client.close
  end
end
