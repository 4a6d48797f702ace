# frozen_string_literal: true

require_relative "deadline"
require_relative "highball_server"

# What is done to a server while clients are at it. Each kind knows how it is asked for, and when it is complete.
module Operations
  LIMIT = 300 # seconds for one, on a machine that has much else to do
  LOOK_EVERY = 0.1 # seconds

  # It was refused, or came to nothing.
  class Failed < StandardError
  end

  # What they have in common.
  class Operation
    # What clients may notice of it (see KeepAliveClient).
    def self.allowed = []

    def initialize(server, app)
      @server = server
      @app = app
    end

    private

    # Runs a command of `highball` that waits until it is done.
    def command(name)
      output, ended = HighballServer.run(name, *@server.which, within: LIMIT)
      raise Failed, "highball #{name}: #{ended}\n#{output}" unless ended.success?
    end

    def wait_for_workers(count)
      Deadline.wait("#{count} workers that serve, and no others", within: LIMIT, every: LOOK_EVERY) do
        @server.status.fetch("workers").map { |worker| worker["state"] } == Array.new(count, "serving")
      end
    end
  end

  # A new version takes the place of the old one.
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

  KINDS = { "restart" => RollingRestart, "workers" => MoreAndFewerWorkers }.freeze
end
