# frozen_string_literal: true

# For Bundler: the doubles of all agents. Highball looks for a gem of this name.
Gem::Specification.new do |spec|
  spec.name = "newrelic_rpm"
  spec.version = "10.5.0"
  spec.summary = "Doubles of the agents of monitoring services"
  spec.authors = ["Highball"]
  spec.required_ruby_version = ">= 3.1"
  spec.require_paths = ["."]
  spec.metadata["rubygems_mfa_required"] = "true"
end
