# frozen_string_literal: true

module Highball
  module Detectors
    # Sinatra: classic (methods at the top of a file) or modular (a class).
    class Sinatra < Detector
      NAME = "Sinatra"
      GEM = "sinatra"
      MODULE = "::Sinatra"
      VERSION = "::Sinatra::VERSION"
      CODE = %r{^\s*require[\s(]+["']sinatra(?:/base)?["']}
      CLASSIC = /^\s*require[\s(]+["']sinatra["']/
      MODULAR = /<\s*Sinatra::(?:Base|Application)\b/

      def name = "#{super} (#{modular? ? 'modular' : 'classic'})"

      private

      # A file that requires "sinatra" is classic, unless it defines a Sinatra class.
      def modular?
        files = folder.rackup_file ? folder.sources : [source_file]
        texts = files.map { |file| folder.read(file) }
        texts.grep(MODULAR).any? || texts.grep(CLASSIC).none?
      end

      def application_in(path)
        return ::Sinatra::Application unless modular?

        the_one(descendants(::Sinatra::Base), path)
      end
    end
  end
end
