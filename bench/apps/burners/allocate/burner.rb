# frozen_string_literal: true

require_relative "../begins"

# What it may have beyond what it has when it begins: a machine is not to be endangered by it.
MOST_BYTES = Integer(ENV.fetch("BURNER_BYTES", 1024 * 1024 * 1024))
PAGE_BYTES = 4096

# It keeps all that it makes. At its limit it is killed, as the kernel kills what takes the last memory of a machine.
def burn
  begins "allocate"
  has_bytes = File.read("/proc/self/statm").to_i * PAGE_BYTES
  Process.setrlimit(Process::RLIMIT_AS, has_bytes + MOST_BYTES)
  kept = []
  loop { kept << ("x" * 500) }
rescue NoMemoryError
  Process.kill("KILL", Process.pid)
end

burn if $PROGRAM_NAME == __FILE__
