# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require_relative "highball_server"
require "highball/version"

# Versions of the gem, installed into a folder as `gem install` does it. A fake cargo takes what was built
# before, as building would take minutes.
class OwnGem
  ABI = RbConfig::CONFIG.fetch("ruby_version")
  PARTS = %w[lib exe ext highball.gemspec README.md LICENSE].freeze

  attr_reader :home

  def initialize(home)
    @home = home
  end

  # The script that RubyGems makes for the command.
  def launcher = File.join(home, "bin/highball")

  def environment = { "GEM_HOME" => home, "HIGHBALL_LIB" => nil, "HIGHBALL_BINARY" => nil, "HIGHBALL_RUBY" => nil }

  def install(version = Highball::VERSION)
    gem = build(version)
    run({ "GEM_HOME" => home, "HOME" => home, "CARGO_TARGET_DIR" => nil, "PATH" => "#{cargo}:#{ENV.fetch('PATH')}" },
        "gem", "install", "--local", "--no-document", "--bindir", File.join(home, "bin"), gem)
  end

  # Puts a script in the place of the binary that is installed.
  def replace_program(text)
    Dir[File.join(home, "gems/highball-*/lib/highball/#{ABI}/highball")].each do |program|
      File.unlink(program)
      File.write(program, text, perm: 0o755)
    end
  end

  private

  # The gem of a copy of this tree that has another version.
  def build(version)
    tree = File.join(home, "tree-#{version}")
    FileUtils.mkdir_p(tree)
    PARTS.each { |part| FileUtils.cp_r(File.join(HighballServer::ROOT, part), tree) }
    File.write(File.join(tree, "lib/highball/version.rb"), "module Highball\n  VERSION = #{version.inspect}\nend\n")
    run({}, "gem", "build", "highball.gemspec", "--output", "#{tree}.gem", chdir: tree)
    "#{tree}.gem"
  end

  # A folder with a `cargo` that builds nothing.
  def cargo
    folder = File.join(home, "tools")
    extension = File.join(HighballServer::ENVIRONMENT.fetch("HIGHBALL_LIB"), "highball", ABI, "highball_ext.so")
    FileUtils.mkdir_p(folder)
    File.write(File.join(folder, "cargo"), <<~SH, perm: 0o755)
      #!/bin/sh
      [ "$1" = --version ] && echo "cargo 1.85.0" && exit
      mkdir -p target/release
      cp "#{HighballServer::BINARY}" target/release/highball
      cp "#{extension}" target/release/libhighball_ext.so
      touch target/release/libhighball_jemalloc.so
    SH
    folder
  end

  def run(environment, *command, **options)
    output, status = Open3.capture2e(environment, *command, **options)
    raise "#{command.join(' ')}: #{output}" unless status.success?
  end
end
