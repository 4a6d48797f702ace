# frozen_string_literal: true

require "json"
require "socket"

# What the doubles have in common. Each makes the calls of an agent that meet the server: it starts and ends threads,
# notices forks, keeps connections, reads the time in the queue, and reports, at the same moments as the agent.
# The services are a collector of the test (ApmCollector). Intervals are shorter: an agent's minute is MINUTE.
module AgentDouble
  MINUTE = 0.3

  # A connection to the service.
  class Connection
    def initialize(agent)
      @agent = agent
      @socket = TCPSocket.new("127.0.0.2", ENV.fetch("APM_PORT").to_i)
    end

    # Sends a report, and waits for the answer.
    def report(facts)
      @socket.puts(JSON.generate(agent: @agent, by: Process.pid, **facts))
      @socket.gets
    end

    def close = @socket.close
  end

  # A request, as agents keep it: the number in its path, and the name that the controller's notification gives it.
  Transaction = Struct.new(:id, :name, :queue, :pid) do
    def self.of(env, queue) = new(env["PATH_INFO"][/\d+\z/], nil, queue, Process.pid)

    def facts = { what: "transaction", id: id, name: name, queue: queue, pid: pid }
  end

  # Middleware around which an agent works: `agent.around(env) { the application's response }`.
  class Middleware
    def initialize(app, agent)
      @app = app
      @agent = agent
    end

    def call(env)
      return @app.call(env) unless env["PATH_INFO"].match?(%r{\A/(?:tasks|fiber)/\d+\z})

      @agent.around(env) { @app.call(env) }
    end
  end

  module_function

  # Reports over a separate connection.
  def report(agent, reports)
    connection = Connection.new(agent)
    reports.each { |facts| connection.report(facts) }
  ensure
    connection&.close
  end

  # As the agents' railties: the block runs while the application is initialized. When an action has ended, the current
  # transaction gets its name.
  def install(name, agent, &at_boot)
    railtie = agent.const_set(:Railtie, Class.new(Rails::Railtie))
    railtie.initializer("#{name}.start") do |application|
      application.middleware.insert(0, Middleware, agent)
      at_boot&.call
      ActiveSupport::Notifications.subscribe("process_action.action_controller") do |*, payload|
        agent.current&.name = "#{payload[:controller]}##{payload[:action]} #{payload[:params]['id']}"
      end
    end
  end
end
