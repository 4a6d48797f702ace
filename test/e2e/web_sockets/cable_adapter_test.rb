# frozen_string_literal: true

require_relative "../../support/cable_client"
require_relative "../../support/e2e_test"

# Action Cable's adapter `highball`: broadcasts of each process reach the clients of all workers.
class CableAdapterTest < E2ETest
  BOOTS_WITHIN = 120 # seconds
  WORKERS = 3

  def setup
    super
    @app = copy_of_example("blog")
    File.write(File.join(@app, "app/channels/room_channel.rb"), CableClient::CHANNEL)
    File.write(File.join(@app, "config/cable.yml"), "production:\n  adapter: highball\n")
    options = ["--boot-timeout", "#{BOOTS_WITHIN}s", "--hijacked-drain-timeout", "20s", "--hold-cable", "off"]
    @server = serve(@app, *options, workers: WORKERS, within: BOOTS_WITHIN, complete: true)
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    super
  end

  def test_a_broadcast_reaches_the_clients_of_all_workers
    clients = Array.new(6) { client }
    pids = clients.map do |one|
      one.say("hello")
      clients.map(&:heard_message).uniq.tap { |messages| assert_equal 1, messages.length }.first["pid"]
    end
    assert_operator pids.uniq.length, :>, 1, "clients are with several workers"
  end

  def test_jobs_and_scripts_broadcast
    clients = Array.new(4) { client }
    assert_equal "done\n", run_in_app('ActionCable.server.broadcast("room", { text: "from a script" }); puts "done"')
    assert_equal ["from a script"] * 4, clients.map(&:heard)
  end

  def test_names_of_any_kind
    rooms = ["a, b", "caf\u00e9", "x" * 1000, "sha256:x", " spaces ", "new\nline", "room:1"]
    clients = rooms.to_h { |room| [room, client(room: room)] }
    clients.each { |room, one| one.say("to #{room}") }
    assert_equal(rooms.map { |room| "to #{room}" }, clients.each_value.map(&:heard))
  end

  def test_restart
    old = Array.new(3) { client }
    highball("restart", *@server.which, within: BOOTS_WITHIN)
    assert(old.all? { |one| one.heard_until_closed.empty? })
    broadcasts_reach_all
  end

  # Clients that are still with the old server get what processes of the new one broadcast.
  def test_hot_restart
    old = Array.new(6) { client }
    highball("upgrade", *@server.which, within: BOOTS_WITHIN)
    broadcasts_reach_all
    heard = old.map { |one| one.heard_until_closed(1) }
    assert_includes heard, ["after"], "all were closed before"
    assert_empty heard.uniq - [["after"], []]
  end

  def test_killed_workers
    clients = Array.new(6) { client }
    HighballServer.kill(@server.worker_pids.first)
    wait_for("another worker") { @server.settled? }
    one = client
    one.say("still here")
    assert_equal "still here", one.heard
    heard = clients.map { |other| other.heard_until_closed(1) }
    assert_equal [[], ["still here"]], heard.uniq.sort, "only clients of the killed worker are closed"
  end

  private

  def client(**params) = CableClient.new(@server, **params).subscribe.tap { |one| @clients << one }

  def broadcasts_reach_all
    clients = Array.new(4) { client }
    clients.first.say("after")
    assert_equal ["after"], clients.map(&:heard).uniq
  end

  # Runs Ruby as a script of the application does, which is no process of the server.
  def run_in_app(code)
    environment = HighballServer::ENVIRONMENT.merge("RAILS_ENV" => "production", "HIGHBALL_HUB" => nil)
    output, status = Open3.capture2e(environment, RbConfig.ruby, "-I", File.join(HighballServer::ROOT, "lib"), "-e",
                                     "require './config/environment'; #{code}", chdir: @app)
    assert status.success?, output
    output
  end
end
