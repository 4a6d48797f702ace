# frozen_string_literal: true

require_relative "boot"

# Not "rails/all": that loads whichever asset pipeline happens to be installed.
require "logger"
require "rails"
require "active_model/railtie"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

# What is measured of Rails: a view, a row of a database, a session, and files that are not Rails's at all.
module Bench
  class Application < Rails::Application
    # "7.2.2.1".to_f is 7.2: the defaults of the Rails that is installed.
    config.load_defaults Rails::VERSION::STRING.to_f

    case ENV.fetch("BENCH_SESSIONS", "cookie")
    when "none" then config.session_store :disabled
    when "cookie" then config.session_store :cookie_store, key: "_bench"
    when "file"
      # Servers differ in the user that runs the application, so the folder is open to all of them.
      files = ActiveSupport::Cache::FileStore.new(Rails.root.join("tmp/sessions"))
      config.session_store :cache_store, key: "_bench", cache: files
    else raise ArgumentError, "BENCH_SESSIONS is none, cookie, or file"
    end
  end
end
