# frozen_string_literal: true

require_relative "boot"

require "logger" # Rails 6.1 does not load it
require "rails/all"

# Require the gems listed in Gemfile, including any gems
# you've limited to :test, :development, or :production.
Bundler.require(*Rails.groups)

module Album
  class Application < Rails::Application
    # The Rails of this Debian.
    config.load_defaults Rails::VERSION::STRING.to_f

    # No library for images.
    config.active_storage.analyzers = []
    config.active_storage.previewers = []
  end
end
