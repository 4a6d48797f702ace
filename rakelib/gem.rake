# frozen_string_literal: true

require "digest/sha2"
require_relative "bill_of_materials"
require_relative "cross_build"
require_relative "cross_ruby"
require_relative "platform_gem"

# The gems, in pkg/. `gem:native` has what most people install: programs that are built already, for each platform,
# with an extension for each Ruby. `gem:macs` serves development by Puma. `gem:source` is built where it is installed.
module Gems
  ROOT = File.expand_path("..", __dir__)
  PACKAGES = File.expand_path(ENV.fetch("HIGHBALL_GEM_FOLDER", "pkg"), ROOT)
  # Of tools and headers: kept from one build to the next.
  CACHE = ENV.fetch("HIGHBALL_GEM_CACHE", File.join(ROOT, "target/gems/cache"))
  PLATFORMS = ENV.fetch("HIGHBALL_GEM_PLATFORMS", CrossBuild::PLATFORMS.keys.join(" ")).split.freeze
  MACS = %w[arm64-darwin x86_64-darwin].freeze
  # What a Mac needs of the sources, and the gems beside it: the server, and what reads config/highball.toml. (tomlrb
  # needs racc, which later Rubies do not have by default, and does not say so.)
  RUBY_CODE = %r{\A(?:lib|exe)/|\A[^/]+\.md\z|\ALICENSE\z}
  GEMS_OF_MACS = { "puma" => [">= 5.0"], "tomlrb" => [">= 1.3", "< 3"], "racc" => [] }.freeze

  module_function

  # A gem specification of this tree, with these files of it.
  def spec(name)
    Dir.chdir(ROOT) { Gem::Specification.load("#{name}.gemspec").dup }
  end

  def native(name)
    platform = CrossBuild::PLATFORMS.fetch(name)
    build = CrossBuild.new(platform, root: ROOT, cache: CACHE)
    built = { "libexec/highball" => build.build("highball", "highball"),
              "lib/highball/highball_jemalloc.so" => build.build("highball-jemalloc", "libhighball_jemalloc.so"),
              **extensions(build, platform) }
    spec = spec("highball")
    spec.extensions = []
    spec.files = spec.files.grep(%r{\A(?:lib|exe|share)/|\A[^/]+\.md\z|\ALICENSE\z})
    spec.required_ruby_version = rubies
    bill = BillOfMaterials.new(%w[highball highball-ext highball-jemalloc], platform.target, workspace: ROOT)
    PlatformGem.new(spec, name, built, bill, root: ROOT).write(PACKAGES)
  end

  # Ruby alone.
  def mac(name)
    spec = spec("highball")
    spec.extensions = []
    spec.files = spec.files.grep(RUBY_CODE)
    GEMS_OF_MACS.each { |gem, versions| spec.add_dependency(gem, *versions) }
    PlatformGem.new(spec, name, root: ROOT).write(PACKAGES)
  end

  def bench(name)
    platform = CrossBuild::PLATFORMS.fetch(name)
    build = CrossBuild.new(platform, root: ROOT, cache: CACHE)
    programs = %w[highball-bench highball-floor]
    built = programs.to_h do |program|
      ["libexec/#{program}", build.build(program, program, workspace: "bench")]
    end
    bill = BillOfMaterials.new(programs, platform.target, workspace: File.join(ROOT, "bench"))
    PlatformGem.new(spec("highball-bench"), name, built, bill, root: ROOT).write(PACKAGES)
  end

  # An extension for each Ruby. Each is copied at once: the next one is built in its place.
  def extensions(build, platform)
    CrossRuby::SUITES.keys.to_h do |abi|
      ruby = CrossRuby.new(abi, platform.debian, File.join(CACHE, "rubies"))
      made = build.build("highball-ext", "libhighball_ext.so", variables: { "RUBY" => ruby.program })
      kept = "#{made}.#{abi}"
      FileUtils.cp(made, kept)
      ["lib/highball/#{abi}/highball_ext.so", kept]
    end
  end

  # From the oldest Ruby that there is an extension for to the newest: RubyGems gives others the source gem.
  def rubies
    oldest, newest = CrossRuby::SUITES.keys.map { |abi| Gem::Version.new(abi) }.minmax
    [">= #{oldest.segments.first(2).join('.')}", "< #{newest.bump}.dev"]
  end

  def source
    FileUtils.mkdir_p(PACKAGES)
    spec = spec("highball")
    Dir.chdir(ROOT) do
      made = PlatformGem.with_fixed_time(ROOT) { Gem::Package.build(spec) }
      FileUtils.mv(made, PACKAGES)
    end
  end

  def checksums
    sums = Dir[File.join(PACKAGES, "*.gem")].map { |gem| "#{Digest::SHA256.file(gem)}  #{File.basename(gem)}\n" }
    File.write(File.join(PACKAGES, "SHA256SUMS"), sums.sort_by { |line| line.split.last }.join)
  end
end

namespace :gem do
  desc "Gems of highball with programs that are built already, for #{Gems::PLATFORMS.join(' and ')}"
  task :native do
    Gems::PLATFORMS.each { |platform| Gems.native(platform) }
    Gems.checksums
  end

  desc "Gems of highball for Macs, which serve development by Puma"
  task :macs do
    Gems::MACS.each { |platform| Gems.mac(platform) }
    Gems.checksums
  end

  desc "Gems of highball-bench, for the platforms of gem:native"
  task :bench do
    Gems::PLATFORMS.each { |platform| Gems.bench(platform) }
    Gems.checksums
  end

  desc "The gem that is built where it is installed"
  task :source do
    Gems.source
    Gems.checksums
  end
end

desc "All gems, and their checksums, in pkg/"
task gem: ["gem:native", "gem:macs", "gem:bench", "gem:source"]
task default: :gem
