# frozen_string_literal: true

require_relative "worker"

module Highball
  # A worker that is no process, but threads of one that has other things to do. For the supervisor, which replaces and
  # kills processes, a child process stands in that does nothing: it ends with this worker, and this worker with it.
  class AttachedWorker < Worker
    # Serves until it is told to end.
    def start
      hold_place
      introduce
      @fork_safety = ForkSafety.new
      @news, @announce = IO.pipe
      serve(open_server)
    rescue Errno::EPIPE
      nil # the supervisor has gone
    ensure
      [@control, @held].compact.each(&:close)
    end

    private

    # It reads until we close our end, however this process ends.
    def hold_place
      reader, @held = IO.pipe
      @stand_in = Process.spawn("cat", in: reader, out: File::NULL, pgroup: true)
      reader.close
      Process.detach(@stand_in)
    end

    def introduce
      pidfd = IO.for_fd(Native.pidfd_of(@stand_in))
      @control.say(:hello, worker: @number, pid: @stand_in, descriptors: [pidfd])
      pidfd.close
    end

    def supervisor_gone = :drain

    # A process that runs tests becomes no mold.
    def report_fitness = @control.say(:unfit, why: "it serves in a process that runs tests")
  end
end
