# frozen_string_literal: true

require_relative "boot"

# Not "rails/all": that loads whichever asset pipeline happens to be installed.
require "logger"
require "rails"
require "active_model/railtie"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

# What is measured of Rails: a view, a row of a database, a session, and files that are not Rails' at all.
module Bench
  class Application < Rails::Application
    # "7.2.2.1".to_f is 7.2: the defaults of the Rails that is installed.
    config.load_defaults Rails::VERSION::STRING.to_f

    # Servers differ in the user that runs the application, so all of them may use what is below tmp/sessions.
    files = Rails.root.join("tmp/sessions")
    case ENV.fetch("BENCH_SESSIONS", "cookie")
    when "none" then config.session_store :disabled
    when "cookie" then config.session_store :cookie_store, key: "_bench"
    when "file"
      config.session_store :cache_store, key: "_bench", cache: ActiveSupport::Cache::FileStore.new(files)
    when "pstore"
      require Rails.root.join("lib/sessions/ruby_pstore")
      config.session_store Sessions::RubyPStore, key: "_bench", folder: files.join("pstore").to_s
    when "highball"
      require "highball/session/rails"
      config.session_store :highball_store, key: "_bench", folder: files.join("highball-#{Process.euid}").to_s
    when "sqlite"
      require Rails.root.join("lib/sessions/sqlite_table")
      config.session_store Sessions::SqliteTable, key: "_bench", database: Rails.root.join("db/sessions.sqlite3").to_s
    when "redis"
      redis = ActiveSupport::Cache::RedisCacheStore.new(url: ENV.fetch("BENCH_REDIS_URL"), namespace: "sessions")
      config.session_store :cache_store, key: "_bench", cache: redis
    else raise ArgumentError, "BENCH_SESSIONS is none, cookie, file, pstore, highball, sqlite or redis"
    end
  end
end
