# frozen_string_literal: true

require_relative "native"

module Highball
  # A profile of this worker: samples of what its threads do, for some seconds. `highball profile` asks for it.
  class Profile
    # server:: the Server.
    # file:: gets the result. It is closed at the end.
    # mode:: "cpu", "wall", "gvl" or "allocations".
    # by_path:: whether samples are grouped by the paths of requests.
    # done:: is called at the end, with what went wrong, or nil.
    def initialize(server, file, mode:, milliseconds:, by_path:, &done)
      ring = server.ring if by_path
      own = [Thread.main, *server.waiting_threads].map(&:native_thread_id)
      @thread = Thread.new { run(file, done) { Native.profile(mode, milliseconds, ring, own, file.fileno) } }
      @thread.name = "highball profile"
      @thread.report_on_exception = false
      @thread.thread_variable_set(:fork_safe, true) # it ends before the worker is forked from
    end

    def running? = @thread.alive?

    # Ends the profile. Its result is what there is by then.
    def finish
      Native.end_profile
      @thread.join
    end

    private

    def run(file, done)
      problem = "the worker ends"
      yield
      problem = nil
    rescue StandardError => e
      problem = e.message
    ensure
      file.close
      done.call(problem)
    end
  end
end
