# frozen_string_literal: true

# The page on which a process tells what its Ruby has done until now: its id, the objects that it has allocated, and
# the ns that it has spent in garbage collection. The benchmark asks it before and after a load, never during one.
HEAP_PATH = "/benchmark-heap"

# It takes its time, so that of several processes another one answers who is asked meanwhile.
HEAP = lambda do |_env|
  sleep 0.02
  figures = "#{Process.pid} #{GC.stat(:total_allocated_objects)} #{GC.total_time}\n"
  [200, { Rack::CONTENT_TYPE => "text/plain", Rack::CONTENT_LENGTH => figures.bytesize.to_s }, [figures]]
end
