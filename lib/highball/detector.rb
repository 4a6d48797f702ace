# frozen_string_literal: true

require_relative "app_folder"

module Highball
  # Recognises the applications of one framework by their files, and loads them. Each detector is a file in
  # `detectors/`; adding one needs no other change.
  #
  # A detector defines these constants, and overrides the methods that differ:
  #
  # NAME::    the framework's name
  # GEM::     the gem that has its version
  # MODULE::  a constant that is defined once it is loaded
  # VERSION:: the constant with its version, or nil
  # CODE::    the pattern of a line that uses it, in `config.ru` or in a Ruby file beside it
  # LAYOUT::  a file that only its applications have, and the pattern of a line in it
  class Detector
    # The loaded file defines no application, or several.
    class NoApplication < StandardError
    end

    # Evidence for a framework. A file of its layout is stronger than a line of code, and that is stronger than a gem,
    # which may be used for something else.
    Evidence = Struct.new(:strength, :words)
    LAYOUT_FOUND = 3
    CODE_FOUND = 2
    GEM_FOUND = 1
    # For a file that no other framework recognises.
    RACK_FOUND = 0

    # A problem that is likely, and what to do about it.
    Warning = Struct.new(:warning, :remedy)

    # Characters shown of a line.
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

    # "Rails 6.1.7", or "Rails" if the files do not show the version.
    def name = [self.class.framework, version].compact.join(" ")

    # The version that will be loaded, or nil.
    def version
      return folder.locked_version(gem) if folder.gemfile

      Gem::Specification.stubs_for(gem).first&.version&.to_s
    end

    # Problems that can be seen before anything is loaded. `environment` is "production" or the like.
    def warnings(_environment) = []

    # Whether its objects are many from the start (HeapLayout.begin_large).
    def large? = false

    # Loads the Rack application: by its config.ru, else in the framework's way, else from its only file.
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
      Evidence.new(LAYOUT_FOUND, "#{file} belongs to a #{self.class.framework} application") if
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

    # A config.ru finds those parts of the standard library that other servers load before it: URI, Set, Time#httpdate,
    # Date, Tempfile and FileUtils by way of Rack's own files.
    def rack_up(file)
      %w[rack rack/utils socket stringio].each { |library| require library }
      Array(Rack::Builder.parse_file(folder.join(file))).first # Rack 2 gives options beside the application
    end

    # Loads an application that has the framework's layout and no config.ru.
    def boot = raise(NotImplementedError, "#{self.class} has a layout, and no way to boot it")

    # The application that the loaded file at `path` defines.
    def application_in(_path) = raise(NotImplementedError, "#{self.class} cannot load a file")

    # All subclasses, at any depth.
    def descendants(ancestor) = ancestor.subclasses.flat_map { |one| [one, *descendants(one)] }

    # The one of these classes that is defined in the file; of several, the one named like the file, or App.
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
