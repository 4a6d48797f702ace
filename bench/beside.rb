# frozen_string_literal: true

require_relative "../test/support/process_facts"

# What the benchmarks of open responses measure beside them: how long other requests take, and the server's memory.
module Beside
  # Times of a request for this path each 10 ms, in ms, sorted.
  def hello(seconds, path)
    @server.connect do |connection|
      Array.new(seconds * 100) do
        began = now
        raise "hello failed" unless connection.get(path).status == 200

        took = now - began
        sleep [0.01 - took, 0].max
        took * 1000
      end.sort
    end
  end

  # Has another process read what these clients get, so that the measuring process does not wait. Returns where its
  # result comes from; the block may write lines to the other end before.
  def in_a_process(clients)
    reader, writer = IO.pipe
    fork do
      writer.write(Marshal.dump(yield(writer)))
      writer.close
      exit!(0)
    end
    clients.each { |client| client.socket.close }
    writer.close
    reader
  end

  def result(reader) = Marshal.load(reader.read) # rubocop:disable Security/MarshalLoad -- our own process

  # Median, 99th percentile and the largest of sorted times.
  def percentiles(times)
    return [] if times.empty?

    [0.5, 0.99, 1.0].map { |share| times[((times.length - 1) * share).round].round(1) }
  end

  # PSS of all processes of the server, in KiB.
  def memory = ProcessFacts.proportional_bytes(ProcessFacts.tree(@server.pid)) / 1024

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
