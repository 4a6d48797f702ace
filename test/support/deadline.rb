# frozen_string_literal: true

# Waits for a condition, with a time limit.
module Deadline
  # The condition was not met in time.
  class Missed < StandardError; end

  LOOK_EVERY = 0.01 # seconds
  LONGEST_SLEEP = 0.2 # seconds
  # The usual limit. It only ends tests that fail, and a busy machine is no failure: what has to be quick is measured.
  WITHIN = 60 # seconds

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Calls the block until its value is neither nil nor false, and returns that value. Between two looks it sleeps three
  # times as long as a look took, within bounds: conditions that ask a server or look at all processes would keep a CPU
  # busy.
  def self.wait(what, within: WITHIN, every: LOOK_EVERY)
    ends_at = now + within
    loop do
      looked_at = now
      answer = yield
      return answer if answer
      raise Missed, "not within #{within} s: #{what}" if now > ends_at

      sleep((3 * (now - looked_at)).clamp(every, [every, LONGEST_SLEEP].max))
    end
  end
end
