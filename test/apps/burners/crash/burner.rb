# frozen_string_literal: true

require_relative "../begins"

# It loads for half a second, as applications do, and then it lacks something.
begins "crash"
loaded = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.5
Array.new(1000) { |step| "part #{step}".hash } while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < loaded
raise "this application never boots"
