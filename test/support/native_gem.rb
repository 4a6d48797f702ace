# frozen_string_literal: true

require_relative "command_to_end"
require_relative "highball_server"

# The gems that need no compiler, as `rake gem:native` builds them. The step `gems-build` of bin/test builds them for
# all tests that follow, which HIGHBALL_TEST_GEMS tells them.
module NativeGem
  class Failed < StandardError; end

  VERSION = "0.1.0"
  TARGET = ENV.fetch("CARGO_TARGET_DIR", File.join(HighballServer::ROOT, "target"))
  FOLDER = File.join(TARGET, "test-gems")
  # Of tools and headers.
  CACHE = "/var/cache/highball/gems"

  module_function

  # The gem for this platform of RubyGems; "ruby" is that of the sources.
  def path(platform = "x86_64-linux")
    (@built ||= {})[platform] ||= ENV.key?("HIGHBALL_TEST_GEMS") || build_for(platform)
    File.join(FOLDER, ["highball", VERSION, *platform].join("-").delete_suffix("-ruby").concat(".gem"))
  end

  def build_for(platform)
    platform == "ruby" ? build("gem:source") : build("HIGHBALL_GEM_PLATFORMS" => platform)
  end

  # In a source tree, which is this one by default.
  def build(task = "gem:native", root: HighballServer::ROOT, **environment)
    folders = { "HIGHBALL_GEM_FOLDER" => FOLDER, "HIGHBALL_GEM_CACHE" => CACHE,
                "CARGO_TARGET_DIR" => File.join(TARGET, "gems") }
    CommandToEnd.output("rake", task, failed: Failed, env: folders.merge(environment), chdir: root)
    true
  end
end
