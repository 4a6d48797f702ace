# frozen_string_literal: true

require_relative "cross_build"
require_relative "debian_package"

# Packages of Debian, in pkg/, with the files of the gems that are there.
namespace :deb do
  desc "Packages of Debian of the gems that are in pkg/"
  task :pack do
    Gems::PLATFORMS.each do |name|
      gem = File.join(Gems::PACKAGES, "highball-#{Gems.spec('highball').version}-#{name}.gem")
      File.exist?(gem) or raise "#{gem} is missing: rake gem:native"
      revision = ENV.fetch("HIGHBALL_DEB_REVISION", "1")
      package = DebianPackage.new(gem, CrossBuild::PLATFORMS.fetch(name).debian, root: Gems::ROOT, revision: revision)
      puts package.write(Gems::PACKAGES)
    end
  end
end

desc "The gems for platforms, and packages of Debian with the same programs, in pkg/"
task deb: ["gem:native", "deb:pack"]
