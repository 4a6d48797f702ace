# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require_relative "debian_packages"

# A Ruby to build an extension for, of any release and architecture that Debian has: its headers, and a program that
# takes its place. Building never runs it.
class CrossRuby
  # The releases of Debian that have the ABIs. The environment names others.
  SUITES = ENV.fetch("HIGHBALL_GEM_RUBIES", "3.1.0:bookworm 3.3.0:trixie 3.4.0:experimental")
              .split.to_h { |pair| pair.split(":") }.freeze
  # Evaluates the rbconfig.rb of another Ruby, which refuses to be loaded by one of another version.
  DUMP = <<~RUBY
    file, version = ARGV
    Object.send(:remove_const, :RUBY_VERSION)
    RUBY_VERSION = version
    load file
    print RbConfig::CONFIG.map { |pair| pair.join("\\x1F") }.join("\\x1E")
  RUBY

  attr_reader :abi

  # `architecture` is Debian's name for it.
  def initialize(abi, architecture, folder)
    @abi = abi
    @architecture = architecture
    @folder = File.expand_path(File.join(folder, "#{abi}-#{architecture}"))
    @suite = SUITES.fetch(abi)
  end

  # A program to name in RUBY: rb-sys asks a Ruby for nothing but its RbConfig, and this prints it.
  def program
    program = File.join(@folder, "ruby")
    return program if File.exist?(program)

    unpack
    File.write("#{program}.rbconfig", rbconfig)
    File.write("#{program}.new", "#!/bin/sh\nexec cat \"$0.rbconfig\"\n")
    File.chmod(0o755, "#{program}.new")
    File.rename("#{program}.new", program)
    program
  end

  private

  def root = File.join(@folder, "root")

  def unpack
    release = @abi.delete_suffix(".0")
    packages = DebianPackages.new(@suite, @architecture,
                                  File.join(File.dirname(@folder), "apt-#{@suite}-#{@architecture}"))
    packages.unpack(["libruby#{release}", "ruby#{release}-dev"], into: root)
  end

  def rbconfig
    file = Dir[File.join(root, "usr/lib/*/ruby/#{@abi}/rbconfig.rb")].first or raise "no rbconfig.rb in #{root}"
    output, errors, status = Open3.capture3(RbConfig.ruby, "--disable-gems", "-e", DUMP, file, @abi)
    raise "#{file}: #{errors}" unless status.success?

    output
  end
end
