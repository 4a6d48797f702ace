# frozen_string_literal: true

require "rbconfig"

# Load while something happens, and an account of how its requests ended.
class Account
  PROGRAM = File.expand_path("open_loop.rb", __dir__)
  # A request: `due` is when it should have been sent (seconds since 1970).
  Request = Struct.new(:due, :seconds, :verb, :machine, :result)

  # Runs the block while requests are sent. Those of the first `warm_up` seconds do not count.
  def self.during(host, port, rate, seed: 1, warm_up: 0)
    reader, writer = IO.pipe
    pid = Process.spawn(RbConfig.ruby, PROGRAM, host, port.to_s, rate.to_s, seed.to_s, out: writer)
    writer.close
    output = Thread.new { reader.read }
    began = Process.clock_gettime(Process::CLOCK_REALTIME)
    sleep warm_up
    yield
    Process.kill("TERM", pid)
    new(output.value, began + warm_up)
  ensure
    Process.wait(pid)
  end

  attr_reader :requests

  def initialize(lines, from)
    all = lines.lines.map do |line|
      due, seconds, *others = line.split
      Request.new(due.to_f, seconds.to_f, *others)
    end
    @requests = all.select { |request| request.due >= from }
  end

  # In milliseconds, of the answered requests.
  def percentile(share)
    times = answered.map(&:seconds).sort
    times[((times.length - 1) * share).round] * 1000
  end

  # By method and error.
  def failures
    failed.map { |request| "#{request.verb} #{request.result}" }.tally
  end

  def failed = @requests.reject { |request| request.result == "200" }

  def by_machine = answered.map(&:machine).tally.sort.to_h

  private

  def answered = @requests.select { |request| request.result == "200" }
end
