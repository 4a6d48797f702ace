# frozen_string_literal: true

require_relative "../rails_files"

module Highball
  module Detectors
    # Rails: config/environment.rb initializes the application that config/application.rb defines.
    class Rails < Detector
      NAME = "Rails"
      GEM = "railties" # the framework itself; `rails` only lists its parts
      MODULE = "::Rails::VERSION"
      VERSION = "::Rails::VERSION::STRING"
      CODE = /^\s*(?:class\s+[\w:]+\s*<\s*(?:::)?Rails::Application\b|run\s+Rails\.application\b)/
      LAYOUT = ["config/environment.rb", /\.initialize!/].freeze

      def warnings(environment) = RailsFiles.new(folder, environment).warnings

      def large? = true

      private

      def boot
        require folder.join("config/environment.rb")
        ::Rails.application
      end

      # An application in one file.
      def application_in(_path)
        ::Rails.application.tap { |application| application.initialize! unless application.initialized? }
      end
    end
  end
end
