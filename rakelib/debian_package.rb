# frozen_string_literal: true

require "fileutils"
require "open3"
require "rubygems/package"
require_relative "platform_gem"

# A package of Debian with the programs, extensions and Ruby code of a platform gem. `packaging/debian` has the rest,
# and debhelper builds it from that. Its bytes depend on nothing but its contents.
class DebianPackage
  class Failed < StandardError; end

  # Where files of the sources go.
  PLACES = {
    "share/man/man1" => "usr/share/man",
    "share/completions/highball.bash" => "usr/share/bash-completion/completions/highball",
    "share/completions/_highball" => "usr/share/zsh/vendor-completions/_highball",
    "share/completions/highball.fish" => "usr/share/fish/vendor_completions.d/highball.fish",
    "packaging/debian/highball.toml" => "etc/highball/highball.toml"
  }.freeze
  # Where files of the gem go.
  BUILT_PLACES = {
    "libexec" => "usr/lib/highball",
    "lib" => "usr/lib/highball",
    "sbom.cdx.json" => "usr/share/doc/highball/sbom.cdx.json"
  }.freeze

  # `architecture` is Debian's name for it. `revision` counts the packages of one version of Highball.
  def initialize(gem, architecture, root:, revision: "1")
    @gem = gem
    @architecture = architecture
    @root = root
    @revision = revision
  end

  # Writes it to this folder, and returns its path.
  def write(folder)
    FileUtils.rm_rf(stage)
    FileUtils.mkdir_p(stage)
    fill
    build
    made = Dir[File.join(File.dirname(stage), "highball_*_#{@architecture}.deb")].first
    FileUtils.mkdir_p(folder)
    FileUtils.mv(made, folder)
    File.join(folder, File.basename(made))
  end

  private

  def stage = File.join(@root, "target/deb", @architecture, "highball")

  def fill
    package = Gem::Package.new(@gem)
    built = File.join(stage, "built")
    package.extract_files(built)
    BUILT_PLACES.each { |name, place| copy(File.join(built, name), place) }
    PLACES.each { |name, place| copy(File.join(@root, name), place) }
    FileUtils.cp_r(File.join(@root, "packaging/debian"), stage)
    FileUtils.cp(File.join(built, "CHANGELOG.md"), stage)
    File.write(File.join(stage, "debian/changelog"), changelog(package.spec.version))
  end

  def copy(source, place)
    destination = File.join(stage, "root", place)
    FileUtils.mkdir_p(File.directory?(source) ? destination : File.dirname(destination))
    FileUtils.cp_r(source, destination)
  end

  # debhelper takes version and time from it.
  def changelog(version)
    time = PlatformGem.with_fixed_time(@root) { Time.at(ENV.fetch("SOURCE_DATE_EPOCH").to_i).utc }
    maintainer = File.read(File.join(stage, "debian/control"))[/^Maintainer: (.+)$/, 1]
    <<~TEXT
      highball (#{version}-#{@revision}) unstable; urgency=medium

        * New version; CHANGELOG.md says what has changed.

       -- #{maintainer}  #{time.strftime('%a, %d %b %Y %H:%M:%S +0000')}
    TEXT
  end

  def build
    FileUtils.rm_f(Dir[File.join(File.dirname(stage), "highball_*")])
    command = ["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps", "--host-arch", @architecture]
    output, status = Open3.capture2e({ "LC_ALL" => "C.UTF-8" }, *command, chdir: stage)
    raise Failed, "#{command.join(' ')}: #{output}" unless status.success?
  rescue Errno::ENOENT
    raise Failed, "dpkg-buildpackage is missing: apt-get install debhelper"
  end
end
