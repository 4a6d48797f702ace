# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "bundled_blog"
require_relative "own_gem"

# The application of test/apps/album: laid out by `rails new`, with Puma in its Gemfile, tests and system tests. It is
# locked to the gems that Debian packages. `album_on_highball` is the same after the documented switch, with Highball
# from an installed gem.
module AlbumApp
  include BundledBlog

  SOURCE = File.join(HighballServer::APPS, "album")
  DOCUMENT = File.join(HighballServer::ROOT, "docs/migrating/puma.md")
  # A block of the document that changes a file, which its first line names.
  DIFF = /^```diff (\S+)\n(.*?)^```$/m
  GEMS = %w[rails sqlite3 puma debug capybara selenium-webdriver].freeze
  # Debian's own Bundler, which knows that packages need no folder as gems have. Ruby's may be newer, and asks for one.
  BUNDLER = Gem::Specification.stubs_for("bundler").reject(&:default_gem?).map { |gem| gem.version.to_s }.first

  # Prepared once for all tests of a process, and copied for each.
  class Templates
    def initialize
      @folder = Dir.mktmpdir("highball-album")
      Minitest.after_run { FileUtils.rm_rf(@folder) }
    end

    # Where the gem is installed.
    def own_gem = @own_gem ||= OwnGem.new(File.join(@folder, "gems")).tap(&:install)

    def on_puma
      @on_puma ||= copy_of(SOURCE, "puma").tap do |app|
        run(app, "bundle", "lock", "--local")
        run(app, "ruby", "bin/rails", "db:prepare")
      end
    end

    def on_highball
      @on_highball ||= copy_of(on_puma, "highball").tap do |app|
        AlbumApp.documented_diffs.each { |diff| run(app, "patch", "-p1", "--no-backup-if-mismatch", input: diff) }
        run(app, "bundle", "install", "--local", env: { "BUNDLER_VERSION" => BUNDLER, **own_gem.environment })
      end
    end

    private

    def copy_of(folder, name)
      File.join(@folder, name).tap do |app|
        FileUtils.rm_rf(app) # left by an attempt that failed
        FileUtils.cp_r(folder, app)
      end
    end

    def run(app, *command, env: {}, input: "")
      environment = HighballServer::ENVIRONMENT.merge(BundledBlog::ENVIRONMENT, env)
      output, ended = Open3.capture2e(environment, *command, chdir: app, stdin_data: input)
      raise "#{command.join(' ')}: #{output}" unless ended.success?
    end
  end

  class << self
    def templates = @templates ||= Templates.new

    # As `patch` takes them: readers see no file names and line numbers.
    def documented_diffs
      found = File.read(DOCUMENT).scan(DIFF)
      raise "#{DOCUMENT} has no diff" if found.empty?

      found.map do |file, lines|
        counts = ["-", "+"].map { |sign| lines.lines.count { |line| line.start_with?(sign, " ") } }
        format("--- a/%<file>s\n+++ b/%<file>s\n@@ -1,%<old>d +1,%<new>d @@\n%<lines>s",
               file: file, old: counts[0], new: counts[1], lines: lines)
      end
    end
  end

  def setup
    super
    missing = GEMS.select { |gem| Gem::Specification.stubs_for(gem).empty? }
    skip "not installed: #{missing.join(', ')}" unless missing.empty?
  end

  def album = copy_of_template(:on_puma)
  def album_on_highball = copy_of_template(:on_highball)

  # Highball is the gem in the bundle, not that of this tree.
  def gem_environment = ENVIRONMENT.merge(AlbumApp.templates.own_gem.environment)

  # Puts text into a file of the application behind the first line that matches.
  def insert(app, file, text, after)
    path = File.join(app, file)
    File.write(path, File.read(path).sub(after) { |line| "#{line}#{text}\n" })
  end

  private

  def copy_of_template(name)
    folder = folder_with
    FileUtils.cp_r("#{AlbumApp.templates.public_send(name)}/.", folder)
    folder
  end
end
