# In a container behind a proxy, as many workers as the container has CPUs.
require "etc"

threads ENV.fetch("RAILS_MAX_THREADS", 3)
workers ENV.fetch("WEB_CONCURRENCY", :auto)
port ENV.fetch("PORT", 3000), "0.0.0.0"

first_data_timeout 10
persistent_timeout 75
force_shutdown_after 20
silence_single_worker_warning if Etc.nprocessors == 1

plugin :tmp_restart
plugin :solid_queue if ENV.key?("SOLID_QUEUE_IN_PUMA")
plugin "yabeda"
plugin :yabeda_prometheus
