# frozen_string_literal: true

require_relative "command_to_end"
require_relative "native_gem"

# The package of Debian for this machine's architecture, made from the gem.
module BuiltDebianPackage
  class Failed < StandardError; end

  module_function

  # Makes it in this folder, and returns its path.
  def build(folder, revision: 1)
    FileUtils.cp(NativeGem.path, folder)
    env = { "HIGHBALL_GEM_FOLDER" => folder, "HIGHBALL_GEM_PLATFORMS" => "x86_64-linux",
            "HIGHBALL_DEB_REVISION" => revision.to_s }
    CommandToEnd.output("rake", "deb:pack", failed: Failed, env: env, chdir: HighballServer::ROOT)
    File.join(folder, "highball_#{NativeGem::VERSION}-#{revision}_amd64.deb")
  end
end
