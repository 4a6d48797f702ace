# Misspelt statements, and those of plugins that are not there.
wokers 3
threads 2, 2
prefork true
solid_queue_mode :async
plugin :no_such_plugin
telemetry do
  port 9000
end
stdout_redirect
lowlevel_error_handler ->(_error) { [500, {}, []] }
