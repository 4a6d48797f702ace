# frozen_string_literal: true

# Settings for production alone, numbers as strings, paths from a root.
if ENV['RAILS_ENV'] == 'production'
  app_root = ENV['APP_ROOT'] || Dir.pwd
  webs = ENV['NUM_WEBS'].to_i.positive? ? ENV['NUM_WEBS'].to_i : 4

  workers webs.to_s
  threads 8, 32

  bind "unix://#{app_root}/tmp/puma.sock"
  pidfile "#{app_root}/tmp/pids/puma.pid"
  state_path "#{app_root}/tmp/pids/puma.state"
  preload_app!
end
