# frozen_string_literal: true

module Highball
  module Detectors
    # Padrino: config/boot.rb loads it, config/apps.rb mounts applications of Sinatra's kind.
    class Padrino < Detector
      NAME = "Padrino"
      GEM = "padrino"
      MODULE = "::Padrino"
      VERSION = "::Padrino::VERSION"
      CODE = /^\s*run\s+Padrino\.application\b/
      LAYOUT = ["config/apps.rb", /^\s*Padrino\.(?:mount|configure_apps)\b/].freeze

      private

      def boot
        require folder.join("config/boot.rb")
        ::Padrino.application
      end
    end
  end
end
