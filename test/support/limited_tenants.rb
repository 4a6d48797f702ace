# frozen_string_literal: true

require "json"
require_relative "admin"

# For a test of hard limits: servers with such limits, and where operators see them.
module LimitedTenants
  include Admin

  # `/burn` has processes that compute for ever, `/fork` a daemon; `/keep?50` keeps 50 MiB, `/hold?50` has a
  # daemon keep it; `/write?FILE` writes there, and `/make?FOLDER` makes one.
  APP = <<~'RUBY'
    KEPT = []
    apart = lambda do |&act|
      reader, writer = IO.pipe
      Process.wait(fork { Process.setsid; writer.puts(fork { act.call }); exit!(0) })
      reader.gets
    end
    attempt = lambda do |&act|
      act.call
      "done"
    rescue SystemCallError => e
      e.class.name
    end
    run lambda { |env|
      what = env["QUERY_STRING"]
      body = case env["PATH_INFO"]
             when "/burn" then Array.new(4) { apart.call { loop { nil } } }.join
             when "/fork" then apart.call { sleep }
             when "/hold" then apart.call { KEPT << ("x" * (what.to_i << 20)) && sleep }
             when "/keep" then KEPT << ("x" * (what.to_i << 20)); Process.pid.to_s
             when "/write" then attempt.call { File.write(what, Process.pid.to_s) }
             when "/make" then attempt.call { Dir.mkdir(what) }
             else Process.pid.to_s
             end
      [200, {}, [body]]
    }
  RUBY

  private

  # Both applications, with these lines in their entries.
  def serve_limited(entries, attacker = attacker_app("config.ru" => APP), victim = victim_app)
    @attackers, @victims = [attacker, victim].map { |folder| @unit.of_app(folder) }
    @victim = victim
    serve_tenants(attacker, victim, entries: entries, top: admin_line, through: @unit.through)
  end

  def reload_with(server, entries)
    configure_tenants(File.join(@place, "attacker"), @victim, entries: entries, top: admin_line)
    server.signal("HUP")
  end

  def limits_of(child) = [@unit.read(child, "cpu.max"), @unit.read(child, "memory.max")]

  def attackers_status(server) = server_status(server)["apps"].find { |app| app["name"] == "attacker" }
  def kernel_limits(server) = attackers_status(server)["kernel_limits"]
  def memory_seen(server) = attackers_status(server).dig("memory", "bytes")

  def admin_line = "admin = 'unix:#{admin_path}'"

  # {"cpu_periods_total{app="attacker"}" => 7.0}: those of applications, whose names begin so.
  def app_metrics(beginning = "")
    lines = ask_admin("/metrics").body.scan(/^highball_app_(#{beginning}.*) (\S+)$/)
    lines.to_h.transform_values { |value| Float(value) }
  end

  # Of the attacker's application, and no other.
  def assert_limits_in_metrics(memory)
    assert_empty app_metrics("(?:cpu|memory|oom|limit)").keys.grep_v(/attacker/)
    seen = app_metrics.transform_keys { |name| name.sub(/{app="attacker"(?:,limit=(.*))?}/, '\1') }
    limits = %w[cpu_limit_cores memory_limit_bytes oom_kills_total limit_enforced"cpu_max" limit_enforced"memory_max"]
    assert_equal [0.2, 300 * E2ETest::MIB, 0, 1, 1], seen.values_at(*limits)
    assert_operator seen.fetch("cpu_periods_total"), :>=, seen.fetch("cpu_throttled_periods_total")
    %w[cpu_seconds_total cpu_throttled_seconds_total].each { |one| assert_operator seen.fetch(one), :>, 0.1 }
    assert_in_delta memory, seen.fetch("memory_bytes"), 50 * E2ETest::MIB
  end

  def top(server)
    highball("top", "--once", *server.which, env: server_env, within: 60)
  end

  # The checks of `highball doctor` for the attacker's application, by name.
  def examine_attacker
    command = %w[doctor --json -e production -p 0]
    output = highball(*command, @place, env: root_env, within: 120)
    JSON.parse(output[output.index("{\n")..]).dig("attacker", "checks").to_h { |check| [check["name"], check] }
  end

  # The application is served without its limits, and the log and the status tell why.
  def assert_not_kept(server, problem)
    assert_equal 200, ask_attacker(server).status
    assert_match(/does not enforce all limits .*attacker/, server.log)
    assert_match(problem, server.log)
    assert_match(problem, kernel_limits(server)["problem"])
    assert_match(/Delegate=yes/, kernel_limits(server)["problem"])
    check = examine_attacker.fetch("limits_not_kept")
    assert_equal "warning", check["state"]
    assert_match(/does not enforce cpu_max of the running server: .*(#{problem})/, check["what"])
    assert_match(/Delegate=yes/, check["remedy"])
  end
end
