# frozen_string_literal: true

require_relative "detector"

module Highball
  # Detects what an application is from its files.
  module Detection
    # The detector with the strongest evidence, or nil.
    def self.of(folder)
      found = Detector.all.map { |detector| detector.new(folder) }.select(&:evidence)
      found.max_by { |detector| detector.evidence.strength }
    end

    # "Rails 6.1.7" for the loaded application: by the detector that found it, else by the loaded frameworks; or "Rack".
    def self.loaded_name(found = nil)
      return found.class.loaded_name if found&.class&.loaded? && found.evidence.strength.positive?

      loaded = Detector.all.select { |detector| detector.loaded? && detector.framework != "Rack" }
      # Applications of frameworks with a layout often mount small ones of other frameworks.
      (loaded.find { |detector| detector::LAYOUT } || loaded.first)&.loaded_name || "Rack"
    end

    # The error message: the files that were looked for, and what to do with files that were found.
    def self.not_found(folder)
      layouts = Detector.all.filter_map { |detector| detector::LAYOUT&.first }.sort
      "there is no application in #{folder.path}: no config.ru, no #{layouts.join(', no ')}, no Ruby file with an " \
        "application (#{AppFolder::USUAL_FILES.join(', ')}, or the only one), and no index.html, here or in public, " \
        "dist or _site#{hint(folder)}"
    end

    def self.hint(folder)
      rackups = Dir.children(folder.path).select { |name| name.end_with?(".ru") }
      if folder.file?("_config.yml") then ". For a Jekyll site, run first: jekyll build"
      elsif folder.file?("package.json") then ". If this is a site that has to be built, run first: npm run build"
      elsif (files = rackups.sort + folder.ruby_files).any?
        ". If one of #{files.join(', ')} is the application, name it: highball #{File.join(folder.path, files.first)}"
      end
    end
    private_class_method :hint
  end
end
