# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

# The sources of the Ruby that Debian has packaged, from the package archives that this machine uses: they have Ruby's
# own tests.
module RubySources
  RELEASE = RUBY_VERSION[/\A\d+\.\d+/]

  class << self
    # Yields a folder with these paths of the sources.
    def with(*paths)
      Dir.mktmpdir("highball-ruby") do |folder|
        write_lists(folder)
        apt(folder, "apt-get", "update", "-qq")
        apt(folder, "apt-get", "source", "--download-only", "-qq", "ruby#{RELEASE}")
        archive = Dir[File.join(folder, "*.orig.tar.*")].first or raise "no archive in #{Dir.children(folder)}"
        wanted = paths.map { |path| "*/#{path}/*" }
        run(folder, "tar", "--extract", "--file", archive, "--strip-components=1", "--wildcards", *wanted)
        yield folder
      end
    end

    private

    # Debian's archive of packages, as one of sources. (An archive of security updates may lack them.)
    def write_lists(folder)
      FileUtils.mkdir_p(File.join(folder, "lists/partial"))
      FileUtils.mkdir_p(File.join(folder, "sources"))
      Dir["/etc/apt/sources.list", "/etc/apt/sources.list.d/*.{list,sources}"].each do |path|
        parts = File.read(path).split(path.end_with?(".list") ? "\n" : /\n\s*\n/).grep(%r{/debian/?$|/debian/? })
        text = parts.join("\n\n").gsub(/^deb /, "deb-src ").gsub(/^Types:.*/, "Types: deb-src")
        File.write(File.join(folder, "sources", File.basename(path)), "#{text}\n")
      end
    end

    def apt(folder, program, *arguments)
      options = { "Dir::Etc::SourceList" => "/dev/null", "Dir::Etc::SourceParts" => File.join(folder, "sources"),
                  "Dir::State::Lists" => File.join(folder, "lists"), "APT::Sandbox::User" => "root" }
      run(folder, program, *options.flat_map { |name, value| ["-o", "#{name}=#{value}"] }, *arguments)
    end

    def run(folder, *command)
      output, status = Open3.capture2e(*command, chdir: folder)
      raise "#{command.join(' ')}:\n#{output}" unless status.success?
    end
  end
end
