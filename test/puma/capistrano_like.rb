#!/usr/bin/env puma

# What deployment tools write into the shared folder.
directory Dir.pwd
rackup File.join(Dir.pwd, 'config.ru')
environment 'production'

tag ''

pidfile 'tmp/pids/puma.pid'
state_path 'tmp/pids/puma.state'
stdout_redirect 'log/puma_access.log', 'log/puma_error.log', true

threads 0, 16

bind "unix://#{Dir.pwd}/tmp/puma.sock?umask=0111&backlog=1024"
bind 'tcp://127.0.0.1:0'

workers 0

restart_command 'bundle exec puma'
prune_bundler

on_restart do
  ENV['BUNDLE_GEMFILE'] = ''
end
