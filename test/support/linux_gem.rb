# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require_relative "highball_server"

# A gem for Linux with programs that are built already, made of the programs that tests use: `rake gem:native` builds
# others.
module LinuxGem
  ROOT = HighballServer::ROOT

  # Writes it to this folder, and returns its path. `built` are the files that are not in the source tree:
  # {"libexec/highball" => "/path/of/it"}.
  def self.write(folder, built = {}, platform: "x86_64-linux")
    spec = Dir.chdir(ROOT) { Gem::Specification.load("highball.gemspec").dup }
    spec.extensions = []
    spec.platform = platform
    files = spec.files.grep(%r{\A(?:lib|exe)/}).to_h { |path| [path, File.join(ROOT, path)] }.merge(built)
    spec.files = files.keys
    stage = File.join(folder, "stage")
    files.each do |path, source|
      FileUtils.mkdir_p(File.dirname(File.join(stage, path)))
      FileUtils.cp(source, File.join(stage, path))
    end
    Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Dir.chdir(stage) { Gem::Package.build(spec, true) } }
    FileUtils.mv(File.join(stage, spec.file_name), folder)
    File.join(folder, spec.file_name)
  end
end
