# frozen_string_literal: true

# `gem install highball` runs this, and then the Makefile it writes: cargo builds the server's binary and
# the extension, which go into lib/highball/<Ruby's ABI version>, and jemalloc, which goes into lib/highball. In a
# clone, bin/setup does the same.

require "rbconfig"

# Elsewhere Puma serves development, and there is nothing to build.
unless RbConfig::CONFIG.fetch("host_os").start_with?("linux")
  puts "Highball itself runs on Linux. To serve development on #{RUBY_PLATFORM}, add Puma: bundle add puma"
  File.write("Makefile", ".PHONY: all install clean\nall:\ninstall:\nclean:\n")
  exit
end

require "mkmf"

NEEDED = Gem::Version.new("1.85")
RUST = "Highball is built by Rust #{NEEDED} or later".freeze
ADVICE = "Install it: apt-get install cargo (Debian 13), apt-get install cargo-web rustc-web (Debian 12), or " \
         "https://rustup.rs."

# The first cargo that is new enough: the one in PATH, else rustup's.
cargos = [find_executable("cargo"), File.join(Dir.home, ".cargo/bin/cargo")].compact.select { |path| File.exist?(path) }
abort "#{RUST}, and there is no `cargo`. #{ADVICE}" if cargos.empty?
versions = cargos.to_h { |path| [path, IO.popen([path, "--version"], &:read)[/[\d.]+/] || "0"] }
cargo = cargos.find { |path| Gem::Version.new(versions[path]) >= NEEDED }
abort "#{RUST}, and #{cargos.first} is of #{versions[cargos.first]}. #{ADVICE}" unless cargo

root = File.expand_path("../..", __dir__)
folder = File.join(root, "lib/highball", RbConfig::CONFIG["ruby_version"])
# What cargo makes on the way is large, and of no use afterwards, unless it is kept for other builds.
target = ENV.fetch("CARGO_TARGET_DIR", File.join(root, "target"))
tidy = "rm -rf \"#{target}\"" unless ENV.key?("CARGO_TARGET_DIR")

# cargo runs the rustc beside it. RubyGems runs `clean` after `install`, too: what is installed is not touched by it.
File.write("Makefile", <<~MAKEFILE)
  .PHONY: all install clean
  all:
  \tcd "#{root}" && PATH="#{File.dirname(cargo)}:$$PATH" RUBY="#{RbConfig.ruby}" "#{cargo}" build --release --locked -p highball -p highball-ext -p highball-jemalloc
  install: all
  \tmkdir -p "#{folder}"
  \tcp "#{target}/release/highball" "#{folder}/highball"
  \tcp "#{target}/release/libhighball_ext.so" "#{folder}/highball_ext.so"
  \tcp "#{target}/release/libhighball_jemalloc.so" "#{root}/lib/highball/highball_jemalloc.so"
  \t#{tidy}
  clean:
  \t#{tidy}
MAKEFILE
