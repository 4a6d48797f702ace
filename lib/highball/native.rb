# frozen_string_literal: true

require "rbconfig" # part of every Ruby, not a gem

module Highball
  # The extension was not built for the Ruby that runs.
  class ExtensionMissing < LoadError
  end

  # Loads the extension, which lies in a folder of its own for each Ruby release: extensions built for one do
  # not work with another.
  module Extension
    RELEASE = RbConfig::CONFIG.fetch("ruby_version") # 3.1.0 for every 3.1.x
    PATH = File.join(__dir__, RELEASE, "highball_ext")

    def self.load
      require PATH
    rescue LoadError => e
      raise ExtensionMissing, "the extension is not built for Ruby #{RUBY_VERSION}: #{e.message}"
    end
  end
end
