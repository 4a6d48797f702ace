# frozen_string_literal: true

# `gem install highball` runs this, and then the Makefile it writes: cargo builds the server's binary and
# the extension, and both go into lib/highball/<Ruby's ABI version>. In a clone, bin/setup does the same.

require "mkmf"
require "rbconfig"

unless find_executable("cargo")
  abort "Highball is built by Rust 1.85 or later, and there is no `cargo`. Install it: " \
        "apt-get install cargo (Debian 13), apt-get install cargo-web (Debian 12), or https://rustup.rs."
end

root = File.expand_path("../..", __dir__)
folder = File.join(root, "lib/highball", RbConfig::CONFIG["ruby_version"])
target = ENV.fetch("CARGO_TARGET_DIR", File.join(root, "target"))

File.write("Makefile", <<~MAKEFILE)
  .PHONY: all install clean
  all:
  \tcd "#{root}" && RUBY="#{RbConfig.ruby}" cargo build --release -p highball -p highball-ext
  install: all
  \tmkdir -p "#{folder}"
  \tcp "#{target}/release/highball" "#{folder}/highball"
  \tcp "#{target}/release/libhighball_ext.so" "#{folder}/highball_ext.so"
  clean:
  \trm -rf "#{folder}"
MAKEFILE
