# frozen_string_literal: true

require_relative "worker"

module Highball
  # A worker that is no process, but threads of a process that has other things to do. The supervisor replaces and kills
  # processes: it is given the pid of a placeholder, a child process that does nothing. Either ends when the other does.
  class AttachedWorker < Worker
    # Serves until the supervisor ends it.
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

    # The placeholder reads until we close our end, however this process ends.
    def hold_place
      reader, @held = IO.pipe
      @placeholder = Process.spawn("cat", in: reader, out: File::NULL, pgroup: true)
      reader.close
      Process.detach(@placeholder)
    end

    def introduce
      pidfd = IO.for_fd(Native.pidfd_of(@placeholder))
      @control.say(:hello, worker: @number, pid: @placeholder, descriptors: [pidfd])
      pidfd.close
    end

    def supervisor_gone = :drain

    # A process that runs tests becomes no mold.
    def report_fitness = @control.say(:unfit, why: "it serves in a process that runs tests")
  end
end
