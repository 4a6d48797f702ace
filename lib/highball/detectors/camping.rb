# frozen_string_literal: true

module Highball
  module Detectors
    # Camping: `Camping.goes :Nuts`.
    class Camping < Detector
      NAME = "Camping"
      GEM = "camping"
      MODULE = "::Camping"
      CODE = /^\s*Camping\.goes\s*\(?\s*:\w+/

      private

      def application_in(path)
        first = folder.read(File.basename(path))[/Camping\.goes\s*\(?\s*:(\w+)/, 1]
        Object.const_get(first)
      end
    end
  end
end
