# frozen_string_literal: true

module Highball
  # Which process the kernel kills first where memory is exhausted (oom_score_adj in proc(5)): a worker, which is
  # replaced within a moment, before the mold, and the mold before the server, with which all connections end. A process
  # may make its own number larger without privileges.
  module OomScore
    # Thousandths of the memory that a process counts as having beside what it has. The server's buffers have an eighth
    # of the memory at most.
    MOLD = 100
    WORKER = 200
    LARGEST = 1000

    class << self
      # Takes the place of a mold, as the server has started this process.
      def mold
        @server ||= read(Process.ppid)
        write(MOLD)
      end

      def worker = write(WORKER)

      private

      # A worker of a mold that the server has not started takes that mold's number for the server's.
      def write(more)
        @server ||= read("self")
        File.write("/proc/self/oom_score_adj", [@server + more, LARGEST].min.to_s)
      rescue SystemCallError, ArgumentError
        nil # a container may forbid it; then the kernel decides by the memory alone
      end

      def read(pid)
        Integer(File.read("/proc/#{pid}/oom_score_adj"))
      rescue SystemCallError
        Integer(File.read("/proc/self/oom_score_adj"))
      end
    end
  end
end
