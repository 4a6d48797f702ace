# frozen_string_literal: true

require_relative "cable_app"
require_relative "e2e_test"
require_relative "raw_cable_client"
require_relative "replaced_workers"

# An application whose WebSockets of Action Cable the front holds, and its clients.
class HeldCableTestCase < E2ETest
  include ReplacedWorkers

  # How a client is asked to connect again.
  RESTART = '{"type":"disconnect","reason":"server_restart","reconnect":true}'
  # All that it gets then: this, and a close frame.
  RESTARTED = [RESTART, [1012].pack("n")].freeze

  def setup
    super
    skip "needs Action Cable" unless Gem::Specification.stubs_for("actioncable").any?
    @clients = []
    @requests = Mutex.new
  end

  def teardown
    @is_done = true
    @publisher&.join(20)
    @readers&.each { |reader| reader.join(20) }
    @clients&.each(&:close)
  ensure
    super # prints the log
  end

  private

  def start(*options, more: "", **settings)
    @folder = folder_with("config.ru" => CableApp.config(more))
    @server = serve(@folder, *options, **settings)
  end

  def client(path = "/cable", fields = {}) = opened(@server.connect, path, fields)
  def opened(connection, *more) = RawCableClient.new(connection, *more).tap { |one| @clients << one }

  def events = @server.get("/events").body

  def broadcast(stream, text, times: 1)
    @server.request("POST", "/broadcast?to=#{stream}&times=#{times}", {}, text)
  end

  # Broadcasts numbers until #end_broadcasts, and has all clients read them.
  def follow
    @publisher = Thread.new { publish }
    @readers = @clients.map { |one| Thread.new { one.texts_until("last") } }
  end

  def publish
    number = -1
    until @is_done
      sleep 0.001 while @waits # Ruby's mutex could be this thread's again and again
      answer = @requests.synchronize { broadcast("room", (number += 1).to_s) }
      raise "not published: #{answer.status}" unless answer.status == 200
    end
    broadcast("room", "last")
    number
  end

  def between_requests(&)
    @waits = true
    @requests.synchronize(&)
  ensure
    @waits = false
  end

  # Each client has got every number, once and in order.
  def end_broadcasts
    @is_done = true
    last = @publisher.value
    @readers.each { |reader| assert_equal [*(0..last).map(&:to_s), "last"], reader.value }
    assert_operator last, :>, 50
    @publisher = @readers = nil
  end
end
