# frozen_string_literal: true

require_relative "../begins"

# What it may keep: a machine is not to be endangered by it.
MOST_BYTES = Integer(ENV.fetch("BURNER_BYTES", 1024 * 1024 * 1024))
PIECE_BYTES = 500
PAGE_BYTES = 4096

# It keeps all that it makes, and then it is killed, as the kernel kills what takes the last memory of a machine. (Not
# by a limit of address space, close to which Ruby would collect garbage for minutes: that is for a mistake here.)
def burn
  begins "allocate"
  has_bytes = File.read("/proc/self/statm").to_i * PAGE_BYTES
  Process.setrlimit(Process::RLIMIT_AS, has_bytes + (4 * MOST_BYTES))
  kept = []
  kept << ("x" * PIECE_BYTES) while kept.length * PIECE_BYTES < MOST_BYTES
  Process.kill("KILL", Process.pid)
end
