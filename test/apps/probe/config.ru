# frozen_string_literal: true

require "uri" # Rack::Lint 2.2 asks for it, and does not load it
require_relative "probe"

probe = Probe.new
linted = Rack::Lint.new(probe)

# Everything that the Rack SPEC allows runs inside Rack::Lint. The rest breaks its rules, or is something that Rack 2's
# Lint hides from the server or does not know.
run ->(env) { (Probe.linted?(env) ? linted : probe).call(env) }
