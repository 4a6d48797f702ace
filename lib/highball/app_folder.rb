# frozen_string_literal: true

require_relative "text"

module Highball
  # An application's files, before any of them is loaded. Reads only enough of them to recognise a framework.
  class AppFolder
    # The most that is read of a file.
    READ_BYTES = 64 * 1024
    # The most Ruby files in the folder itself that are read.
    MOST_SOURCES = 32
    # Usual names for the file of a single-file application.
    USUAL_FILES = %w[app.rb application.rb main.rb server.rb web.rb].freeze
    GEMFILES = %w[Gemfile gems.rb].freeze
    LOCK_FILES = %w[Gemfile.lock gems.locked].freeze

    attr_reader :path, :named

    # named:: the file that was given in the place of the folder (`highball app.rb`), or nil.
    def initialize(path = Dir.pwd, named = nil)
      @path = path
      @named = named
      @texts = {}
    end

    def file?(name) = File.file?(join(name))
    def join(name) = File.join(@path, name)

    # The beginning of the file; empty if it cannot be read.
    def read(name)
      @texts[name] ||= Text.read(join(name), READ_BYTES)
    end

    # The .ru file to load, or nil.
    def rackup_file
      return @named if @named&.end_with?(".ru")

      "config.ru" if @named.nil? && file?("config.ru")
    end

    # Ruby files in the folder itself, the likeliest to be the application first.
    def ruby_files
      @ruby_files ||= begin
        usual = USUAL_FILES + ["#{File.basename(@path)}.rb"]
        files = Dir.children(@path).select { |name| name.end_with?(".rb") && file?(name) }
        files.sort_by { |name| [usual.index(name) || usual.length, name] }.first(MOST_SOURCES)
      end
    end

    # Ruby files that may be the application: the named one, else those with a usual name, else the only one.
    def candidates
      return [@named] if @named

      usual = ruby_files & [*USUAL_FILES, "#{File.basename(@path)}.rb"]
      usual.empty? && ruby_files.one? ? ruby_files : usual
    end

    # config.ru and the files beside it that it loads: where an application shows which framework it uses.
    def sources
      loaded = ruby_files.select do |name|
        %r{["'/]#{Regexp.escape(Text.of(File.basename(name, '.rb')))}(?:\.rb)?["']}.match?(read(rackup_file))
      end
      [rackup_file, *loaded]
    end

    # The first of the sources where a line is like this, or nil.
    def source_like(pattern) = sources.find { |name| pattern.match?(read(name)) }

    def gemfile = GEMFILES.find { |name| file?(name) }

    # Whether the Gemfile names the gem.
    def gem?(name)
      gemfile && /^\s*gem[\s(]+["']#{Regexp.escape(name)}["']/.match?(read(gemfile))
    end

    # The version of a gem in the lock file, or nil.
    def locked_version(name)
      lock = LOCK_FILES.find { |file| file?(file) }
      lock && read(lock)[/^    #{Regexp.escape(name)} \(([^)\s]+)\)$/, 1]
    end

    # Whether the lock file lacks the gem; false where there is no lock file to ask.
    def locked_without?(name)
      LOCK_FILES.any? { |file| file?(file) } && locked_version(name).nil?
    end
  end
end
