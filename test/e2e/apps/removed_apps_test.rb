# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "../../support/many_apps_test_case"

# Applications that are removed from the configuration while a start waits for them; and the last one.
class RemovedAppsTest < ManyAppsTestCase
  # Prints a line when it begins to boot, and never finishes.
  HANGS = <<~RUBY
    File.write("booting", "")
    sleep
  RUBY

  def test_a_start_does_not_wait_for_a_removed_one
    folder = folder_of_good_and_hanging
    systemd = listener(File.join(folder, "notify"))
    write_entries(folder, "good" => "", "hanging" => "")
    server = start_many(folder, env: { "NOTIFY_SOCKET" => File.join(folder, "notify") })
    wait_for("the boot that hangs", within: HighballServer::SERVES_WITHIN) { booting?(folder) }
    refute_includes server.log, "serving on"
    configure(server, folder, { "good" => "" })
    wait_for("the start line") { server.log.include?("serving on") }
    assert systemd.wait_readable(10), "systemd received no notification"
    assert_equal "READY=1\nSTATUS=Serving", systemd.recv(100)
    assert_equal "good", ask(server, "good", "/").first
  ensure
    systemd&.close
  end

  def test_a_hot_restart_does_not_wait_for_a_removed_one
    folder = folder_of_good_and_hanging
    write_entries(folder, "good" => "")
    server = serve_many(folder)
    write_entries(folder, "good" => "", "hanging" => "")
    server.signal("USR2")
    wait_for("the boot that hangs", within: HighballServer::SERVES_WITHIN) { booting?(folder) }
    assert_equal "booting", server.full_status.dig("upgrade", "state")
    configure(server, folder, { "good" => "" })
    wait_for("the new process", within: 30) { server.full_status["pid"] != server.pid }
    assert_equal(["good"], server.full_status["apps"].map { |app| app["name"] })
    assert_equal "good", ask(server, "good", "/").first
  end

  def test_a_file_without_any_application_left_changes_nothing
    server, folder = serve_two
    before = pids(server)
    configure(server, folder, {}, "threads = 2")
    wait_for("the complaint") { server.log.include?("no [[app]] is left in the configuration file") }
    assert_equal before, pids(server)
  end

  def test_a_file_that_is_named_has_applications_or_the_current_folder_is_one
    folder = folder_with("server.toml" => "threads = 2", "app/config.ru" => echo("app"), "empty/README" => "")
    options = ["serve", "-b", "127.0.0.1", "-p", "0", "--config", File.join(folder, "server.toml")]
    output = highball_fails(*options, directory: File.join(folder, "empty"))
    assert_match(/server\.toml has no \[\[app\]\], and there is no application in the current folder/, output)
    server = HighballServer.start(File.join(folder, "app"), command: [HighballServer::BINARY, *options])
    @servers << server
    assert_equal 2, server.status["workers"].first["threads"]
  end

  private

  def folder_of_good_and_hanging
    folder_with("good/config.ru" => echo("good"), "hanging/config.ru" => HANGS)
  end

  def listener(path) = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.bind(Addrinfo.unix(path)) }

  def write_entries(folder, applications)
    File.write(File.join(folder, "highball.toml"), entries(applications))
  end

  def booting?(folder) = File.exist?(File.join(folder, "hanging/booting"))
end
