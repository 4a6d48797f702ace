# frozen_string_literal: true

require "open3"
require_relative "native_gem"

# The package of Debian for this machine's architecture, made from the gem.
module BuiltDebianPackage
  class Failed < StandardError; end

  module_function

  # Makes it in this folder, and returns its path.
  def build(folder, revision: 1)
    FileUtils.cp(NativeGem.path, folder)
    output, status = Open3.capture2e(
      { "HIGHBALL_GEM_FOLDER" => folder, "HIGHBALL_GEM_PLATFORMS" => "x86_64-linux",
        "HIGHBALL_DEB_REVISION" => revision.to_s },
      "rake", "deb:pack", chdir: HighballServer::ROOT
    )
    raise Failed, output unless status.success?

    File.join(folder, "highball_#{NativeGem::VERSION}-#{revision}_amd64.deb")
  end
end
