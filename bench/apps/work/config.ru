# frozen_string_literal: true

# Answers /50 after 50 ms of CPU time, and so on. It is computed in Ruby, which holds the lock on Ruby as most
# applications do; the thread's own clock tells when it is enough, so a busy machine does not make it less.
STEPS = 500 # some 20 µs

def compute(milliseconds)
  finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) + (milliseconds * 1_000_000)
  sum = 0
  while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < finish
    STEPS.times { |step| sum = ((sum * 31) ^ step) & 0xffff }
  end
  sum
end

type = Rack::CONTENT_TYPE
length = Rack::CONTENT_LENGTH

run(lambda do |env|
  milliseconds = Integer(env["PATH_INFO"].delete_prefix("/"), 10)
  compute(milliseconds)
  answer = "#{milliseconds} ms\n"
  [200, { type => "text/plain", length => answer.bytesize.to_s }, [answer]]
end)
