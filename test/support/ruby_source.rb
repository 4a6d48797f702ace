# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

# The source package of Debian's Ruby, for Ruby's own tests. It is kept in the cache folder of bin/test.
module RubySource
  VERSION = RUBY_VERSION[/\d+\.\d+/]
  CACHE = if Process.uid.zero?
            "/var/cache/highball"
          else
            File.join(ENV["XDG_CACHE_HOME"] || "#{Dir.home}/.cache",
                      "highball")
          end
  FOLDER = File.join(CACHE, "ruby-source-#{VERSION}")

  # A folder with these parts of the source, or nil if the package was not downloaded and cannot be, or may not be.
  def self.unpack(*parts, into:, download:)
    archive = archive() || (download && fetch) or return
    patterns = parts.map { |part| "*/#{part}" }
    system("tar", "--extract", "--file", archive, "--directory", into, "--strip-components=1", "--wildcards", *patterns,
           exception: true)
    into
  end

  def self.archive = Dir.glob("#{FOLDER}/*.orig.tar.*").grep_v(/\.asc\z/).first

  # apt has its own lists here: the machine's may lack those of sources.
  def self.fetch
    FileUtils.mkdir_p(File.dirname(FOLDER))
    Dir.mktmpdir("ruby-source", File.dirname(FOLDER)) do |folder|
      File.write("#{folder}/sources.list",
                 "deb-src [signed-by=#{KEYRING}] http://deb.debian.org/debian #{suite} main\n")
      FileUtils.mkdir_p("#{folder}/lists/partial")
      apt(folder, "update")
      apt(folder, "source", "--download-only", "ruby#{VERSION}")
      FileUtils.mkdir_p(FOLDER)
      FileUtils.mv(Dir.glob("#{folder}/*.orig.tar.*"), FOLDER)
    end
    archive
  end

  KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
  private_constant :KEYRING

  def self.apt(folder, *words)
    options = { "Dir::Etc::sourcelist" => "#{folder}/sources.list", "Dir::Etc::sourceparts" => "-",
                "Dir::State::lists" => "#{folder}/lists", "APT::Sandbox::User" => "root" }
    options = options.flat_map { |name, value| ["-o", "#{name}=#{value}"] }
    output, status = Open3.capture2e("apt-get", "--quiet", *options, *words, chdir: folder)
    raise "apt-get #{words.join(' ')} failed:\n#{output}" unless status.success?
  end

  def self.suite = File.read("/etc/os-release")[/^VERSION_CODENAME=(\w+)/, 1]
  private_class_method :apt, :suite
end
