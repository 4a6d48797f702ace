# frozen_string_literal: true

require_relative "detector"

module Highball
  # The version of Ruby that a folder asks for, as rbenv, asdf, mise and others read it.
  module RubyVersion
    # What comes before the version in each file.
    FILES = { ".ruby-version" => /\A\s*(?:ruby[-@])?/, ".tool-versions" => /^\s*ruby\s+/ }.freeze

    # A warning if the Ruby that runs is another one, else nil.
    def self.mismatch(folder, running: RUBY_VERSION)
      file, wanted = asked_for(folder)
      return if wanted.nil? || "#{running}.".start_with?("#{wanted}.")

      Detector::Warning.new(
        "#{file} asks for Ruby #{wanted}, and this is Ruby #{running}",
        "Install it (rbenv install #{wanted}, mise install, or asdf install), name an interpreter with --ruby, " \
        "or write #{running} into #{file}."
      )
    end

    # The file and the version; nil where none is asked for, or not by number ("system", "jruby-9.4").
    def self.asked_for(folder)
      FILES.each do |file, before|
        wanted = folder.read(file)[/#{before.source}(\d+(?:\.\d+)*)(?=[-\s]|\z)/, 1]
        return [file, wanted] if wanted
      end
      nil
    end
  end
end
