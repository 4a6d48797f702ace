# frozen_string_literal: true

# Several machines behind a load balancer, in network namespaces of one machine: a Highball in each, with applications
# that mostly sleep, and HAProxy in front, with the configuration that `highball config haproxy --machines` prints.
# Clients send requests at random times, at a given rate whatever the answers (bench/cluster/open_loop.rb).
#
#     sudo ruby bench/cluster.rb [--rate N] [--seconds N] [--rounds N] [SCENARIO…]
#
# It measures ways to balance in some scenarios, and shows what clients notice of events in the others. Without a
# name, it runs all of them, which takes some minutes. It needs root, iproute2 and HAProxy. Whatever ends it, nothing
# is left.

require_relative "cluster/sandbox"
exit Sandbox.run(__FILE__, ARGV) unless Sandbox.inside?

require "optparse"
require_relative "cluster/laboratory"

options = { rate: 240.0, seconds: 20.0, rounds: 2, warm_up: 8.0 }
parser = OptionParser.new do |opts|
  opts.on("--rate N", Float, "requests a second (#{options[:rate].round})")
  opts.on("--seconds N", Float, "of each measurement (#{options[:seconds].round})")
  opts.on("--rounds N", Integer, "of the ways that are compared (#{options[:rounds]})")
  opts.on("--warm-up N", Float, "seconds before each measurement (#{options[:warm_up].round})")
end
scenarios = Laboratory::SCENARIOS.map { |name, scenario| "    #{name.ljust(10)}#{scenario.about}\n" }.join
parser.banner = "sudo ruby bench/cluster.rb [OPTION…] [SCENARIO…]\n\nScenarios:\n#{scenarios}\nOptions:"
names = parser.parse(ARGV, into: parsed = {})
unknown = names - Laboratory::SCENARIOS.keys
abort "There is no scenario #{unknown.join(', ')}; see --help." if unknown.any?

parsed.each { |name, value| options[name.to_s.tr("-", "_").to_sym] = value }
Laboratory.new(**options).run(names.empty? ? Laboratory::SCENARIOS.keys : names)
