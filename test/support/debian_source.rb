# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

# The sources of Debian's packages, for the tests that these leave out. They are kept in the cache folder of bin/test.
module DebianSource
  USUAL_CACHE = Process.uid.zero? ? "/var/cache" : ENV.fetch("XDG_CACHE_HOME") { "#{Dir.home}/.cache" }
  CACHE = ENV.fetch("HIGHBALL_TEST_CACHE", "#{USUAL_CACHE}/highball")
  KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

  # It cannot be downloaded.
  class Unreachable < StandardError; end

  class << self
    # A folder with these parts of the source of this version, or nil if it was not downloaded and may not be.
    def unpack(package, version, *parts, into:, download: true)
      archive = archive(package, version) || (download && fetch(package, version)) or return
      patterns = parts.map { |part| "*/#{part}" }
      system("tar", "--extract", "--file", archive, "--directory", into, "--strip-components=1", "--wildcards",
             *patterns, exception: true)
      into
    end

    private

    # (Versions such as 3.1.7+really3.1.2 are of an earlier one.)
    def archive(package, version)
      Dir.glob("#{folder_of(package)}/#{package}_*#{version}{,+*,-*}.orig.tar.*").grep_v(/\.asc\z/).first
    end

    def folder_of(package) = File.join(CACHE, "sources", package)

    # (The archive of security updates may have the version that is installed, and may lack sources that it lists.)
    def fetch(package, version)
      problems = sources.map do |source|
        download(package, source)
        found = archive(package, version) and return found
        "It is not #{version}."
      rescue Unreachable => e
        e.message
      end
      raise Unreachable, "The source of #{package}: #{problems.join("\n")}"
    end

    def sources
      name = File.read("/etc/os-release")[/^VERSION_CODENAME=(\w+)/, 1]
      { "debian" => name, "debian-security" => "#{name}-security" }.map do |archive, suite|
        "deb-src [signed-by=#{KEYRING}] http://deb.debian.org/#{archive} #{suite} main\n"
      end
    end

    # apt has its own lists here: the machine's may lack those of sources. It checks the SHA-256 of the archive, which
    # Debian has signed.
    def download(package, source)
      FileUtils.mkdir_p(folder_of(package))
      Dir.mktmpdir(".download", CACHE) do |folder|
        File.write("#{folder}/sources.list", source)
        FileUtils.mkdir_p("#{folder}/lists/partial")
        apt(folder, "update", "--error-on=any")
        apt(folder, "source", "--download-only", "--tar-only", package)
        FileUtils.mv(Dir.glob("#{folder}/*.orig.tar.*"), folder_of(package))
      end
    end

    def apt(folder, *words)
      options = { "Dir::Etc::sourcelist" => "#{folder}/sources.list", "Dir::Etc::sourceparts" => "-",
                  "Dir::State::lists" => "#{folder}/lists", "APT::Sandbox::User" => "root" }
      options = options.flat_map { |name, value| ["-o", "#{name}=#{value}"] }
      output, status = Open3.capture2e("apt-get", "--quiet", *options, *words, chdir: folder)
      raise Unreachable, "apt-get #{words.join(' ')} failed:\n#{output}" unless status.success?
    end
  end
end
