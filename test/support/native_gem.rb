# frozen_string_literal: true

require "open3"
require_relative "highball_server"

# The gems that need no compiler, as `rake gem:native` builds them. The step `gems-build` of bin/test builds them for
# all tests that follow, and names the folder in HIGHBALL_TEST_GEMS.
module NativeGem
  class Failed < StandardError; end

  VERSION = "0.1.0"
  FOLDER = ENV.fetch("HIGHBALL_TEST_GEMS") do
    File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(HighballServer::ROOT, "target")), "test-gems")
  end
  # Of tools and headers.
  CACHE = "/var/cache/highball/gems"

  module_function

  # The gem for this platform of RubyGems.
  def path(platform = "x86_64-linux")
    file = File.join(FOLDER, "highball-#{VERSION}-#{platform}.gem")
    (@built ||= {})[platform] ||= ENV.key?("HIGHBALL_TEST_GEMS") || build("HIGHBALL_GEM_PLATFORMS" => platform)
    file
  end

  def build(task = "gem:native", **environment)
    output, status = Open3.capture2e(
      { "HIGHBALL_GEM_FOLDER" => FOLDER, "HIGHBALL_GEM_CACHE" => CACHE }.merge(environment),
      "rake", task, chdir: HighballServer::ROOT
    )
    raise Failed, output unless status.success?
  end
end
