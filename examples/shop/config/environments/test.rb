# frozen_string_literal: true

Rails.application.configure do
  config.eager_load = true # so that a constant that is missing fails a test
  config.cache_classes = true
  config.consider_all_requests_local = true
  config.action_controller.allow_forgery_protection = false
  config.action_controller.perform_caching = true
  config.cache_store = :memory_store
  config.active_record.maintain_test_schema = false # there is none: migrations make the database
  config.active_support.deprecation = :stderr
end
