# Names that are the application's, in hooks.
threads get(:max_threads, 4)
port 0
before_fork { Log.warn("before_fork of #{App.name}") }
before_worker_boot { App.new }
inject { quiet }
