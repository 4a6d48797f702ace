# frozen_string_literal: true

require "rbconfig"

module Highball
  # Which file a feature is: a part of a path that `require` looks for in the folders of the load path.
  #
  # Ruby looks into one folder after the other, by up to three system calls for each: the boot of a Rails application
  # makes 70,000 of them that find nothing. An index reads a folder once. It only answers where there is one answer,
  # whatever the order of the folders and of what is loaded: all else is left to Ruby. It does not notice new files, so
  # it is for a boot alone.
  class LoadPathIndex
    # What Ruby looks for if the feature has no such ending.
    ENDINGS = [".rb", ".#{RbConfig::CONFIG.fetch('DLEXT')}"].freeze
    # Features that are not looked for on the load path, and those of native extensions, which have several endings.
    LEFT_TO_RUBY = %r{\A[./~]|/\.\.?/|\.(?:so|o|dll|bundle|#{RbConfig::CONFIG.fetch('DLEXT')})\z}

    def initialize(load_path = $LOAD_PATH)
      @load_path = load_path
      @names = Hash.new { |names, folder| names[folder] = names_in(folder) }
      forget
    end

    # The path of the only file that this feature can be; nil if there is none, if there are several, or if Ruby is to
    # find out.
    def find(feature)
      return if LEFT_TO_RUBY.match?(feature)

      refresh unless @load_path == @seen
      return unless @answers
      return only(files(feature)) if feature.end_with?(ENDINGS[0])

      only(ENDINGS.flat_map { |ending| files(feature + ending) })
    end

    # Whether there is such a file, or if that is not known.
    def may_have?(feature)
      refresh unless @load_path == @seen
      return true if !@answers || LEFT_TO_RUBY.match?(feature)

      [feature, *ENDINGS.map { |ending| feature + ending }].any? { |name| !files(name).empty? }
    end

    private

    def only(files) = (files[0] if files.length == 1)

    # The files of this name, below folders of the load path.
    def files(name)
      folder, slash, base = name.rpartition("/")
      first = slash.empty? ? base : folder[%r{\A[^/]*}]
      (@folders[first] || []).filter_map do |root|
        place = slash.empty? ? root : "#{root}/#{folder}"
        "#{place}/#{base}" if @names[place].key?(base)
      end
    end

    # Takes over how the load path has changed.
    def refresh
      @seen = @load_path.dup
      paths = @seen.map { |folder| File.path(folder) }
      @answers = paths.all? { |path| path.start_with?("/") } # Ruby expands others again each time
      forget_folders unless (@paths - paths).empty?
      (paths - @paths).each { |path| add(path) }
      @paths = paths
    rescue TypeError, ArgumentError # no path: what Ruby makes of it is not known
      forget
      @seen = @load_path.dup
    end

    def forget
      @answers = false
      @seen = nil
      forget_folders
    end

    def forget_folders
      @paths = []
      @folders = {} # {the first part of a feature => the real paths of the folders that have it}
    end

    def add(path)
      root = File.realpath(path)
      @names[root].each_key { |name| (@folders[name] ||= []).push(root).uniq! }
    rescue SystemCallError
      # A folder that is not there has no files.
    end

    # {the name of a file or folder => true}
    def names_in(folder)
      Dir.children(folder).to_h { |name| [name, true] }
    rescue SystemCallError
      {}
    end
  end
end
