# frozen_string_literal: true

# RUBYOPT loads this into every Ruby process of a server that is measured. At SIGPWR, which no server uses, a process
# collects its garbage, and reports its heap in a file of its temporary folder: slots in use, and free ones.
Signal.trap("PWR") do
  GC.start
  path = File.join(ENV.fetch("TMPDIR", "/tmp"), "heap.#{Process.pid}")
  File.write("#{path}.new", "#{GC.stat(:heap_live_slots)} #{GC.stat(:heap_free_slots)}\n")
  File.rename("#{path}.new", path)
end

# Passenger takes the handlers of all signals in this list away.
Signal.singleton_class.prepend(Module.new { def list = super.except("PWR") })
