# A base and a file for the environment.
threads_count = 4
threads threads_count, threads_count
persistent_timeout 30
load 'config/puma/shared.rb'
