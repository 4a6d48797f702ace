# frozen_string_literal: true

Rails.application.configure do
  config.eager_load = false
  config.cache_classes = false
  config.consider_all_requests_local = true
  config.active_support.deprecation = :log
  config.cache_store = :null_store
end
