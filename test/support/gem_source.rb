# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require "zlib"

# A folder with gems that RubyGems and Bundler install from, as from a server for gems.
module GemSource
  # Puts these gems there. (RubyGems 3.6 and later index gems by another gem only.)
  def self.publish(folder, *gems)
    FileUtils.mkdir_p(%W[#{folder}/gems #{folder}/quick/Marshal.4.8])
    FileUtils.cp(gems, "#{folder}/gems")
    specs = gems.map { |gem| Gem::Package.new(gem).spec }
    specs.each do |spec|
      File.binwrite("#{folder}/quick/Marshal.4.8/#{spec.full_name}.gemspec.rz", Zlib.deflate(Marshal.dump(spec)))
    end
    names = specs.map { |spec| [spec.name, spec.version, spec.original_platform] }
    { "specs" => names, "latest_specs" => names, "prerelease_specs" => [] }.each do |file, list|
      File.binwrite("#{folder}/#{file}.4.8.gz", Zlib.gzip(Marshal.dump(list)))
    end
  end
end
