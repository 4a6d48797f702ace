# frozen_string_literal: true

require_relative "deadline"
require_relative "highball_server"

# Operations on a server while clients send requests. Each kind knows how to request it, and when it is complete.
module Operations
  LIMIT = 300 # seconds for one, on a machine that has much else to do
  LOOK_EVERY = 0.1 # seconds

  # It was refused, or failed.
  class Failed < StandardError
  end

  # The common parts.
  class Operation
    # The failures that clients may notice (see KeepAliveClient).
    def self.allowed = []

    def initialize(server, app)
      @server = server
      @app = app
    end

    private

    # Runs a command of `highball` that waits until it is done: its output.
    def command(name)
      output, ended = HighballServer.run(name, *@server.which, within: LIMIT)
      raise Failed, "highball #{name}: #{ended}\n#{output}" unless ended.success?

      output
    end

    def wait_for_workers(count)
      Deadline.wait("#{count} workers that serve, and no others", within: LIMIT, every: LOOK_EVERY) do
        @server.status.fetch("workers").map { |worker| worker["state"] } == Array.new(count, "serving")
      end
    end
  end

  # A new version replaces the old one.
  class RollingRestart < Operation
    def perform
      @app.release
      command("restart")
    end
  end

  # One worker more, and one fewer.
  class MoreAndFewerWorkers < Operation
    def perform
      usual = @server.status.fetch("workers_wanted")
      @server.signal("TTIN")
      wait_for_workers(usual + 1)
      @server.signal("TTOU")
      wait_for_workers(usual)
    end
  end

  # A warm worker becomes the mold, and the others are forked from it.
  class Refork < Operation
    def perform = command("refork")
  end

  # A new `highball` takes over the listening sockets; the old one finishes what it has, and ends.
  class HotRestart < Operation
    # An answer is the last on its connection when the old process gives it.
    def self.allowed = [:closed]

    def perform
      @app.release
      command("upgrade")
      Deadline.wait("the end of all that was there before", within: LIMIT, every: LOOK_EVERY) { @server.settled? }
    end
  end

  KINDS = {
    "restart" => RollingRestart, "refork" => Refork, "upgrade" => HotRestart, "workers" => MoreAndFewerWorkers
  }.freeze
end
