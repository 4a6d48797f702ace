# frozen_string_literal: true

require "rbconfig" # part of every Ruby, not a gem

module Highball
  # The system that this process runs on. Highball itself runs on Linux. Elsewhere Puma serves development
  # (Highball::DevelopmentServer).
  module HostSystem
    def self.linux? = RbConfig::CONFIG.fetch("host_os").start_with?("linux")

    # Such as arm64-darwin23.
    def self.name = RUBY_PLATFORM
  end
end
