# Statements of Puma 6.4 to 8.
set_default_host '127.0.0.1'
port ENV.fetch('PORT', 0)
threads 3
workers :auto
max_keep_alive 50
enable_keep_alives true
idle_timeout 3600
http_content_length_limit 10 * 1024 * 1024
supported_http_methods :any
early_hints
fiber_per_request false
shutdown_debug on_force: true
silence_fork_callback_warning
worker_boot_timeout 120

cluster do
  worker_shutdown_timeout 40
end
single { quiet }

after_booted { }
after_stopped { }
before_thread_start { }
before_thread_exit { }
out_of_band { GC.start }
