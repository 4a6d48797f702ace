# frozen_string_literal: true

module Bench
  # The figures of one scheme under so many connections in one round. CPU time and context switches are per
  # request, over all processes of the server. `others_percent` is the share of the machine's CPU time that
  # went to neither the server nor wrk, `steal_percent` what its hypervisor took.
  Measurement = Struct.new(:scheme, :connections, :round, :load, :user_us, :system_us, :context_switches,
                           :others_percent, :steal_percent, :memory, keyword_init: true) do
    def cpu_us = user_us + system_us

    def errors? = load.errors.any?
  end

  # Measures schemes in turn, so that what changes on the machine meanwhile meets them all alike.
  class Comparison
    WARM_UP_SECONDS = 1

    def initialize(schemes:, connections:, rounds:, seconds:, workers:, threads:)
      @schemes = schemes
      @connections = connections
      @rounds = rounds
      @seconds = seconds
      @size = { workers:, threads: }
    end

    # Yields each measurement. Each round has new servers; those that are not under load sleep.
    def each_measurement
      1.upto(@rounds) do |round|
        with_servers do |servers|
          @connections.product(servers) { |connections, server| yield measure(server, connections, round) }
        end
      end
    end

    # Yields scheme, connections and SystemCalls, of one short run each.
    def each_system_calls
      with_servers do |servers|
        @connections.product(servers) do |connections, server|
          yield server.scheme, connections, SystemCalls.count(server, connections)
        end
      end
    end

    private

    def with_servers
      servers = []
      @schemes.each { |scheme| servers << Server.new(scheme, **@size) }
      yield servers
    ensure
      servers.each(&:stop)
    end

    def measure(server, connections, round)
      Wrk.run(server.url, connections:, seconds: WARM_UP_SECONDS)
      before = sample(server.tree)
      load = Wrk.run(server.url, connections:, seconds: @seconds)
      after = sample(server.tree)

      user, system = after[:cpu].since(before[:cpu])
      own_seconds = ((user + system) / 1e6) + after[:wrk_seconds] - before[:wrk_seconds]
      machine = after[:machine] - before[:machine]
      Measurement.new(scheme: server.scheme, connections:, round:, load:, memory: server.tree.memory,
                      user_us: user / load.requests, system_us: system / load.requests,
                      context_switches: (after[:switches] - before[:switches]).fdiv(load.requests),
                      others_percent: machine.others_percent(own_seconds), steal_percent: machine.steal_percent)
    end

    def sample(tree)
      { cpu: tree.cpu_time, machine: Machine.cpu_ticks, wrk_seconds: Process.times.then { _1.cutime + _1.cstime },
        switches: tree.context_switches }
    end
  end
end
