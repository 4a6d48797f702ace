# frozen_string_literal: true

require "rbconfig" # part of every Ruby, not a gem

module Highball
  # The extension is not built for the running Ruby.
  class ExtensionMissing < LoadError
  end

  # Loads the extension. Each Ruby release has a separate folder, because an extension built for one does not work with
  # another.
  module Extension
    RELEASE = RbConfig::CONFIG.fetch("ruby_version") # 3.1.0 for every 3.1.x
    PATH = File.join(__dir__, RELEASE, "highball_ext")

    def self.load
      require PATH
    rescue LoadError => e
      raise ExtensionMissing, "the extension is not built for Ruby #{RUBY_VERSION}#{instead}: #{e.message}"
    end

    # Loads it for code that can do without. Returns whether it is there.
    def self.load_if_built
      require PATH
      true
    rescue LoadError
      false
    end

    # The releases that there are extensions for.
    def self.instead
      releases = Dir.glob("*/highball_ext.so", base: __dir__).map { |path| path[/\A\d+\.\d+/] }.compact.sort
      " (only for #{releases.join(', ')})" unless releases.empty?
    end
    private_class_method :instead
  end
end
