# frozen_string_literal: true

require "fileutils"
require_relative "restart_test_case"

# A test that replaces one `highball` by another.
class UpgradeTestCase < RestartTestCase
  private

  # Asks for a hot restart, and returns the process that serves now.
  def upgrade(server)
    output = highball("upgrade", *server.which, within: 60)
    output[/a new process serves: .* \(pid (\d+)\)/, 1].to_i
  end

  # Requests a hot restart that fails, and returns the message.
  def upgrade_fails(server)
    highball_fails("upgrade", *server.which, within: 60)
  end

  # Starts a server by a copy of the binary, which can be exchanged: [server, path].
  def serve_by_copy(app, *options)
    binary = File.join(folder_with, "highball")
    FileUtils.cp(HighballServer::BINARY, binary)
    command = [binary, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production", "-w", "1", *options, app]
    [serve(app, command: command), binary]
  end

  # Starts a hot restart to a version that boots after `let_go`: the new process.
  def begin_upgrade(server, app)
    slow(app, 2)
    server.signal("USR2")
    wait_for("the new process") { stage_of_upgrade(server) == "booting" && server.status.dig("upgrade", "pid") }
  end

  def stage_of_upgrade(server) = server.status.dig("upgrade", "state")

  def serves_by(server, pid)
    wait_for("process #{pid} to serve") { server.status["pid"] == pid && answer(server) }
  end

  def gone?(pid) = !ProcessFacts.alive?(pid)

  # The processes `highball` of a server.
  def highballs(server)
    server.pids.select { |pid| File.read("/proc/#{pid}/comm").strip == "highball" }
  rescue Errno::ENOENT, Errno::ESRCH
    retry
  end

  # Stops a server whose first process is gone.
  def stop_rest(server, pid)
    HighballServer.kill(pid, "TERM")
    assert_empty server.orphans(within: 20)
  end
end
