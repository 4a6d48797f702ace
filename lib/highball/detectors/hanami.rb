# frozen_string_literal: true

module Highball
  module Detectors
    # Hanami 2: `class App < Hanami::App` in config/app.rb.
    class Hanami < Detector
      NAME = "Hanami"
      GEM = "hanami"
      MODULE = "::Hanami"
      VERSION = "::Hanami::VERSION"
      CODE = %r{^\s*(?:require[\s(]+["']hanami(?:/boot)?["']|run\s+Hanami\.app\b)}
      LAYOUT = ["config/app.rb", /<\s*Hanami::App\b/].freeze

      private

      def boot
        require "hanami/boot"
        ::Hanami.app
      end
    end
  end
end
