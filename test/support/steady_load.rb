# frozen_string_literal: true

require_relative "deadline"

# Requests at a steady rate, whether or not those before have been answered.
class SteadyLoad
  # Clients, more than are busy at a time.
  CLIENTS = 40
  WITHIN = 30 # seconds

  # Sends requests for the target to the server, this number a second, for some seconds. The number of each outcome:
  # {200 => 400}. They are of a kind that is not repeated when a worker dies.
  def self.run(server, target, per_second:, seconds:)
    new(server, target).run(per_second, seconds)
  end

  def initialize(server, target)
    @server = server
    @target = target
    @due = Queue.new
    @outcomes = Queue.new
  end

  def run(per_second, seconds)
    clients = Array.new(CLIENTS) { Thread.new { send_requests } }
    began = Deadline.now
    (per_second * seconds).times do |number|
      pause = began + (number / per_second.to_f) - Deadline.now
      sleep pause if pause.positive?
      @due << number
    end
    @due.close
    clients.each(&:join)
    Array.new(@outcomes.length) { @outcomes.pop }.tally
  end

  private

  def send_requests
    while @due.pop
      @outcomes << begin
        @server.request("POST", @target, {}, "x", within: WITHIN)&.status || "closed"
      rescue SystemCallError, EOFError, HttpConnection::TimedOut, HttpConnection::BadAnswer => e
        e.class.name
      end
    end
  end
end
