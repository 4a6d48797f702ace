# What guides for Heroku recommend.
workers Integer(ENV['WEB_CONCURRENCY'] || 2)
threads_count = Integer(ENV['RAILS_MAX_THREADS'] || 5)
threads threads_count, threads_count

preload_app!

port        ENV['PORT']     || 3000
environment ENV['RACK_ENV'] || 'development'

# Heroku ends a request after 30 seconds, and a dyno 30 seconds after TERM.
worker_timeout 15
worker_shutdown_timeout 25
raise_exception_on_sigterm false

on_worker_boot do
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord)
end

lowlevel_error_handler do |error|
  warn "reported: #{error.message}"
  [500, {}, ["An error has occurred.\n"]]
end
