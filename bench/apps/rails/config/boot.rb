# frozen_string_literal: true

# There is no Gemfile: the gems are Debian's packages, whatever version the release has.
