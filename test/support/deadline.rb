# frozen_string_literal: true

# Waiting for a condition: as long as needed, never longer than allowed.
module Deadline
  # What was waited for did not come.
  class Missed < StandardError; end

  LOOK_EVERY = 0.01 # seconds

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Asks the block until its answer is neither nil nor false, and returns that answer.
  def self.wait(what, within: 10, every: LOOK_EVERY)
    ends_at = now + within
    loop do
      answer = yield
      return answer if answer
      raise Missed, "not within #{within} s: #{what}" if now > ends_at

      sleep every
    end
  end
end
