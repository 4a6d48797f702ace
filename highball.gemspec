# frozen_string_literal: true

require_relative "lib/highball/version"

Gem::Specification.new do |spec|
  spec.name = "highball"
  spec.version = Highball::VERSION
  spec.authors = ["The Highball authors"]
  spec.summary = "An application server for Ruby: point it at an application folder and it is deployed."
  spec.description = "Highball serves Rack and Rails applications: one process in Rust owns the client " \
                     "connections, a queue and the static files, and hands requests to Ruby workers over " \
                     "shared memory."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.homepage = "https://github.com/highball-server/highball"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  sources = "{crates,ext,lib,exe}/**/*.{rs,rb,toml,md,css,js,html,conf,yaml,hcl}"
  files = [sources, "exe/highball", "share/**/*", "Cargo.{toml,lock}", "*.md", "LICENSE"]
  spec.files = Dir.chdir(__dir__) { Dir[*files].select { |path| File.file?(path) } }
  spec.bindir = "exe"
  spec.executables = ["highball"]
  spec.extensions = ["ext/highball/extconf.rb"]

  spec.add_dependency "rack", ">= 2.2", "< 4"
end
