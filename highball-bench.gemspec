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
           "examples/{blog,shop}/**/*", "docs/benchmarks.md", "LICENSE"]
  # Not what applications of this tree have written.
  written = %r{\Aexamples/\w+/(tmp|log|storage|db/\w+\.sqlite3)|\Abench/apps/(redmine/site|examples/(blog|shop))/}
  spec.files = Dir.chdir(__dir__) { Dir[*files].select { |path| File.file?(path) && !path.match?(written) } }
  spec.bindir = "exe"
  spec.executables = ["highball-bench"]

  spec.add_dependency "highball", Highball::VERSION
end
