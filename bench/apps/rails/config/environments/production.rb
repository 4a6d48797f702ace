# frozen_string_literal: true

Rails.application.configure do
  config.eager_load = true
  config.cache_classes = true
  config.consider_all_requests_local = false
  config.action_controller.perform_caching = true

  # Only what goes wrong is logged, and where the server's own messages go: otherwise the disk is measured too.
  config.log_level = :warn
  config.logger = ActiveSupport::Logger.new($stderr)

  # So that every server can answer for a file, those too that know nothing of files.
  config.public_file_server.enabled = true
  config.public_file_server.headers = { "cache-control" => "public, max-age=31536000" }

  # It signs cookies without any use.
  config.secret_key_base = "0123456789abcdef" * 8
end
