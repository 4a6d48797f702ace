# frozen_string_literal: true

require_relative "detector"

module Highball
  # The Ruby version that a folder asks for, as rbenv, asdf, mise and others read it.
  module RubyVersion
    # Each file, and the text before the version in it.
    FILES = { ".ruby-version" => /\A\s*(?:ruby[-@])?/, ".tool-versions" => /^\s*ruby\s+/ }.freeze

    # A warning if the running Ruby is another one, else nil.
    def self.mismatch(folder, running: RUBY_VERSION)
      file, wanted = asked_for(folder)
      return if wanted.nil? || "#{running}.".start_with?("#{wanted}.")

      Detector::Warning.new(
        "#{file} asks for Ruby #{wanted}, and this is Ruby #{running}",
        "Install it (rbenv install #{wanted}, mise install, or asdf install), name an interpreter with --ruby, " \
        "or write #{running} into #{file}."
      )
    end

    # The file and the version; nil if there is none, or it is no number ("system", "jruby-9.4").
    def self.asked_for(folder)
      FILES.each do |file, before|
        wanted = folder.read(file)[/#{before.source}(\d+(?:\.\d+)*)(?=[-\s]|\z)/, 1]
        return [file, wanted] if wanted
      end
      nil
    end
  end
end
