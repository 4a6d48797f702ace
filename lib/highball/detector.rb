# frozen_string_literal: true

require_relative "app_folder"

module Highball
  # What is known of one framework: how its applications are recognised by their files, and how they are loaded. Each is
  # a file in `detectors/`; a new one needs no other change.
  #
  # A detector gives itself these constants, and overrides what is different for it:
  #
  # NAME::    the framework's name
  # GEM::     the gem that has its version
  # MODULE::  the constant that is there once it is loaded
  # VERSION:: the constant that says its version, if there is one
  # CODE::    what a line in `config.ru`, or in a Ruby file beside it, looks like that uses it
  # LAYOUT::  a file that only its applications have, and what a line in it looks like
  class Detector
    # What was loaded does not say which of several applications is meant, or has none.
    class NoApplication < StandardError
    end

    # What speaks for a framework. A file in its own place says more than a line of code, and that more than a gem,
    # which may be there for something else.
    Evidence = Struct.new(:strength, :words)
    LAYOUT_FOUND = 3
    CODE_FOUND = 2
    GEM_FOUND = 1
    # For a file that only Rack can make something of.
    RACK_FOUND = 0

    # What will go wrong, or may, and what to do.
    Warning = Struct.new(:warning, :remedy)

    # Characters of a line that are shown.
    QUOTED = 60

    VERSION = nil
    CODE = nil
    LAYOUT = nil

    class << self
      # Every detector, by name.
      def all = @all ||= load_all

      def inherited(detector)
        super
        (@subclasses ||= []) << detector
      end

      def framework = self::NAME
      def loaded? = Object.const_defined?(self::MODULE)

      # "Rails 6.1.7", once it is loaded.
      def loaded_name = [framework, loaded_version].compact.join(" ")

      def loaded_version
        return Object.const_get(self::VERSION) if self::VERSION && Object.const_defined?(self::VERSION)

        Gem.loaded_specs[self::GEM]&.version&.to_s
      end

      private

      def load_all
        Dir[File.join(__dir__, "detectors", "*.rb")].each { |file| require file }
        @subclasses.sort_by(&:framework)
      end
    end

    def initialize(folder)
      @folder = folder
    end

    attr_reader :folder

    # The strongest evidence, or nil.
    def evidence = @evidence ||= of_layout || of_code || of_gem

    # "Rails 6.1.7": with its version where files tell it.
    def name = [self.class.framework, version].compact.join(" ")

    # The version that will be loaded, or nil.
    def version
      return folder.locked_version(gem) if folder.gemfile

      Gem::Specification.stubs_for(gem).first&.version&.to_s
    end

    # What can be seen to go wrong before anything is loaded. `environment` is "production" or the like.
    def warnings(_environment) = []

    # Loads the application, by its config.ru, by the framework's own way, or from its only file: a Rack application.
    def load
      return rack_up(folder.rackup_file) if folder.rackup_file
      return boot if evidence.strength == LAYOUT_FOUND

      path = folder.join(main_file)
      require path
      application_in(path)
    end

    private

    def gem = self.class::GEM

    def of_layout
      return if folder.named || self.class::LAYOUT.nil?

      file, pattern = self.class::LAYOUT
      Evidence.new(LAYOUT_FOUND, "#{file} is that of a #{self.class.framework} application") if
        pattern.match?(folder.read(file))
    end

    def of_code
      pattern = self.class::CODE
      file = pattern && (folder.rackup_file ? folder.source_like(pattern) : source_file)
      Evidence.new(CODE_FOUND, "#{file} says `#{folder.read(file)[pattern].strip[0, QUOTED]}`") if file
    end

    def of_gem
      return unless folder.rackup_file && gem && folder.gem?(gem)

      Evidence.new(GEM_FOUND, "there is #{folder.rackup_file}, and #{folder.gemfile} names #{gem}")
    end

    # The file to load where there is no config.ru.
    def main_file = source_file

    # The file that shows what an application without config.ru is made with, or nil.
    def source_file = folder.candidates.find { |name| self.class::CODE.match?(folder.read(name)) }

    def rack_up(file)
      require "rack"
      Array(Rack::Builder.parse_file(folder.join(file))).first # Rack 2 gives options beside the application
    end

    # The framework's own way, for a layout without config.ru.
    def boot = raise(NotImplementedError, "#{self.class} has a layout, and no way to boot it")

    # The application that the loaded file at `path` has made.
    def application_in(_path) = raise(NotImplementedError, "#{self.class} cannot load a file")

    # All classes that have come of this one.
    def descendants(ancestor) = ancestor.subclasses.flat_map { |one| [one, *descendants(one)] }

    # The one of these classes that stands in the file, is named like it, or is called App.
    def the_one(classes, path)
      here = classes.select { |one| one.name && Object.const_source_location(one.name)&.first == path }
      here = here.reject { |one| here.any? { |other| other < one } }
      return here.first if here.one?

      usual = [File.basename(path, ".rb").split("_").map(&:capitalize).join, "App", "Application"]
      here.find { |one| usual.include?(one.name.split("::").last) } or raise NoApplication, which(here, path)
    end

    def which(classes, path)
      file = File.basename(path)
      return "#{file} defines no #{self.class.framework} application" if classes.empty?

      "#{file} defines several applications (#{classes.map(&:name).sort.join(', ')}): say which in a config.ru, " \
        "such as: require_relative \"#{File.basename(path, '.rb')}\"; run #{classes.first.name}"
    end
  end
end
