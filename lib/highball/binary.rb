# frozen_string_literal: true

require "rbconfig"

module Highball
  # The binary `highball`, which owns the sockets and starts everything else.
  module Binary
    # The binary was not found.
    class Missing < StandardError
    end

    BESIDE = ["../../libexec/highball", File.join(RbConfig::CONFIG.fetch("ruby_version"), "highball"),
              "../../target/release/highball", "../../target/first/highball"].freeze

    # Where it may be: in this gem (for one platform, or built for this Ruby), or in the build folder of a source tree.
    def self.beside = BESIDE.map { |name| File.expand_path(name, __dir__) }

    # Its path: one of these, or on the PATH.
    def self.path
      named = ENV.fetch("HIGHBALL_BINARY", nil) and return named
      on_path = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).map { |folder| File.join(folder, "highball") }
      (beside + on_path).find { |file| File.file?(file) && File.executable?(file) && !script?(file) } or
        raise Missing, "the program `highball` is not built: run bin/setup in Highball's folder, or name the " \
                       "program in HIGHBALL_BINARY"
    end

    # The variables that make the binary use this Ruby code and this interpreter, and hot restarts the launcher.
    def self.environment
      { "HIGHBALL_LIB" => File.expand_path("..", __dir__), "HIGHBALL_RUBY" => ENV["HIGHBALL_RUBY"] || RbConfig.ruby,
        "HIGHBALL_LAUNCHER" => launcher }
    end

    # The script that RubyGems or Bundler provides for the command, if this is a gem.
    def self.launcher
      return unless defined?(Gem.loaded_specs) && Gem.loaded_specs.key?("highball")

      script = File.join(Gem.bindir, "highball")
      script if File.executable?(script)
    end
    private_class_method :launcher

    # Whether it is a wrapper script, which would only come back here.
    def self.script?(file) = File.binread(file, 2) == "#!"
    private_class_method :script?
  end
end
