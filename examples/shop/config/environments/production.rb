# frozen_string_literal: true

Rails.application.configure do
  config.eager_load = true
  config.cache_classes = true
  config.consider_all_requests_local = false
  config.active_support.deprecation = :log
  config.log_level = :info
  config.public_file_server.headers = { "cache-control" => "public, max-age=3600" }

  # Each process has a cache, so that the shop needs no other service.
  config.action_controller.perform_caching = true
  config.cache_store = :memory_store, { size: 16 * 1024 * 1024 }

  # An example should start without a set-up step: without SECRET_KEY_BASE, it generates a key once and keeps it.
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") do
    key = Rails.root.join("tmp/secret_key_base")
    key.dirname.mkpath
    key.write(SecureRandom.hex(64), perm: 0o600) unless key.exist?
    key.read
  end
end
