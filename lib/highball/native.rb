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
      raise ExtensionMissing, "the extension is not built for Ruby #{RUBY_VERSION}: #{e.message}"
    end
  end
end
