# frozen_string_literal: true

require_relative "lib/highball/version"

# What `highball bench` runs. There are gems of it for platforms alone (`rake gem:bench`), with its programs in libexec.
Gem::Specification.new do |spec|
  spec.name = "highball-bench"
  spec.version = Highball::VERSION
  spec.authors = ["The Highball authors"]
  spec.summary = "Measures ways to deploy a Ruby application side by side: what `highball bench` runs."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.homepage = "https://github.com/highball-server/highball"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  files = ["bench/{schemes,workloads,apps}/**/*", "bench/{pstore,sessions}.rb", "exe/highball-bench",
           "docs/benchmarks.md", "LICENSE"]
  spec.files = Dir.chdir(__dir__) { Dir[*files].select { |path| File.file?(path) } }
  spec.bindir = "exe"
  spec.executables = ["highball-bench"]

  spec.add_dependency "highball", Highball::VERSION
end
