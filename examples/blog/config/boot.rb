# frozen_string_literal: true

# There is no Gemfile: the gems are Debian's packages (see debian-packages), whatever version the
# release has. With a Gemfile, Bundler would be set up here.
