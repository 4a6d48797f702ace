# frozen_string_literal: true

# There is no Gemfile: the gems are Debian's packages (see debian-packages), in the version of the release. With a
# Gemfile, Bundler would be set up here.
