# frozen_string_literal: true

module Highball
  # What a misspelt name was meant to be.
  module Spelling
    # One of the known names, of which at most a third of the letters differ; nil if there is none. (Ruby's own spell
    # checker falls back to names that are far-fetched.)
    def self.near(name, known)
      return unless defined?(::DidYouMean::SpellChecker)

      guess = ::DidYouMean::SpellChecker.new(dictionary: known).correct(name).first or return
      guess if ::DidYouMean::Levenshtein.distance(name, guess) <= [name.length / 3, 1].max
    end
  end
end
