# frozen_string_literal: true

# A large Rails application behind nginx, by a socket or a port.
persistent_timeout ENV.fetch('PERSISTENT_TIMEOUT', 20).to_i

max = ENV.fetch('MAX_THREADS', 5).to_i
threads ENV.fetch('MIN_THREADS', max).to_i, max

if ENV['SOCKET']
  bind "unix://#{ENV['SOCKET']}"
else
  bind "tcp://#{ENV.fetch('BIND', '127.0.0.1')}:#{ENV.fetch('PORT', 3000)}"
end

environment ENV.fetch('RAILS_ENV', 'development')
workers ENV.fetch('WEB_CONCURRENCY', 2).to_i

preload_app!

before_worker_boot do
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord)
end

plugin :tmp_restart

set_remote_address(proxy_protocol: :v1) if ENV['PROXY_PROTOCOL'] == 'true'
