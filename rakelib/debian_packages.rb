# frozen_string_literal: true

require "fileutils"
require "open3"

# Packages of a release of Debian and of an architecture, which need not be those of this machine: downloaded and
# unpacked, not installed. apt uses separate lists for that, so that nothing of this machine's changes.
class DebianPackages
  class Failed < StandardError; end

  def initialize(suite, architecture, folder)
    @suite = suite
    @architecture = architecture
    @folder = File.expand_path(folder)
  end

  # Unpacks these packages into a folder, which is complete if it is there.
  def unpack(names, into:)
    return into if File.directory?(into)

    apt("update") unless File.exist?(File.join(@folder, "sources.list"))
    downloads = File.join(@folder, "downloads")
    FileUtils.rm_rf([downloads, "#{into}.new"])
    FileUtils.mkdir_p([downloads, "#{into}.new"])
    apt("download", *names, chdir: downloads)
    Dir[File.join(downloads, "*.deb")].each { |file| run("dpkg-deb", "--extract", file, "#{into}.new") }
    File.rename("#{into}.new", into)
    into
  end

  private

  def apt(*arguments, chdir: "/")
    prepare
    options = settings.flat_map { |setting| ["--option", setting] }
    run("apt-get", "--quiet", "--quiet", *options, *arguments, chdir: chdir)
  end

  def settings
    ["APT::Architecture=#{@architecture}", "APT::Architectures=#{@architecture}", "APT::Sandbox::User=root",
     "Dir::State=#{@folder}/state", "Dir::State::status=#{@folder}/status", "Dir::Cache=#{@folder}/cache",
     "Dir::Etc::SourceList=#{@folder}/sources.list", "Dir::Etc::SourceParts=-"]
  end

  def prepare
    FileUtils.mkdir_p(%w[state/lists/partial cache/archives/partial].map { |name| File.join(@folder, name) })
    FileUtils.touch(File.join(@folder, "status"))
    File.write(File.join(@folder, "sources.list"),
               "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] #{mirror} #{@suite} main\n")
  end

  # Where this machine has its own packages from.
  def mirror
    output = run("apt-get", "indextargets", "--format", "$(SITE) $(REPO_URI)", "Created-By: Packages", "Origin: Debian")
    uri = output.lines.map { |line| line.split.last }.find { |one| one.to_s.end_with?("/debian/") }
    uri or raise Failed, "apt has no list of Debian's packages: apt-get update"
  end

  def run(*command, chdir: "/")
    output, status = Open3.capture2e({ "LC_ALL" => "C" }, *command, chdir: chdir)
    raise Failed, "#{command.join(' ')}: #{output}" unless status.success?

    output
  end
end
