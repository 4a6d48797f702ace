# frozen_string_literal: true

module Highball
  module Detectors
    # Grape: classes that inherit from Grape::API.
    class Grape < Detector
      NAME = "Grape"
      GEM = "grape"
      MODULE = "::Grape::API"
      VERSION = "::Grape::VERSION"
      CODE = /^\s*(?:class\s+[\w:]+\s*<\s*(?:::)?Grape::API\b|require[\s(]+["']grape["'])/

      private

      def application_in(path) = the_one(descendants(::Grape::API), path)
    end
  end
end
