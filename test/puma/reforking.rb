# Workers are forked again from a warm one.
workers 2
threads 5, 5
fork_worker 100
nakayoshi_fork
before_refork { GC.start }
after_refork { }
before_worker_fork { |_number| }
after_worker_fork { |_number| }
wait_for_less_busy_worker 0.005
max_fast_inline 20
io_selector_backend :auto
worker_culling_strategy :oldest
