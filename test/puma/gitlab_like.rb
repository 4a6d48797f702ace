# frozen_string_literal: true

# Hooks that go to the application's own code, and a look into Puma's options.
require_relative '../lifecycle'

rackup 'config.ru'
pidfile 'tmp/pids/puma.pid'
state_path 'tmp/pids/puma.state'
stdout_redirect 'log/puma.stdout.log', 'log/puma.stderr.log', true

threads 1, 16
queue_requests false
bind "unix://#{Dir.pwd}/tmp/gitlab.socket"
workers 3

before_restart { Lifecycle.call(:before_restart) }
before_fork { Lifecycle.call(:before_fork) }

Lifecycle.threads = @config.options[:max_threads]

before_worker_boot { Lifecycle.call(:worker_start) }
before_worker_shutdown { Lifecycle.call(:worker_stop) }

preload_app!
tag 'gitlab-puma-worker'
worker_timeout 60
wait_for_less_busy_worker ENV.fetch('PUMA_WAIT_FOR_LESS_BUSY_WORKER', 0.001).to_f

log_formatter { |line| line.upcase }

lowlevel_error_handler do |error, _env|
  Lifecycle.call(error.class.name)
  [500, {}, ['An error has occurred.']]
end
