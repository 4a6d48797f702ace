# frozen_string_literal: true

module Highball
  module Detectors
    # Roda: classes that inherit from Roda.
    class Roda < Detector
      NAME = "Roda"
      GEM = "roda"
      MODULE = "::Roda"
      VERSION = "::Roda::RodaVersion"
      CODE = /^\s*(?:class\s+[\w:]+\s*<\s*(?:::)?Roda\b|require[\s(]+["']roda["'])/

      private

      def application_in(path) = the_one(descendants(::Roda), path).freeze.app
    end
  end
end
