# frozen_string_literal: true

module Highball
  # Whether a worker that has served can be forked from. A fork copies one thread only: native threads that are not
  # Ruby's would be missing in the copy, without anybody being told, and locks that they hold would stay locked.
  class ForkSafety
    TASKS = "/proc/self/task"
    # Up to 3.2 Ruby keeps the native thread of a thread that has ended for 3 seconds, in case another begins.
    PATIENCE = 4.0 # seconds
    LOOK_EVERY = 0.05
    # "worker.rb:84": how Ruby names the native threads of those that have no name.
    NAMED_BY_RUBY = /:\d+\*?\z|\*\z/
    # Highball's own, which has ended when the last request has (ext/highball/src/turns.rs).
    OURS = "highball-turns"
    NAMES_TOLD = 5

    # To be made before the application has had a chance to start threads: what runs besides Ruby's own threads is
    # Highball's, or one that Ruby runs on.
    def initialize
      @seen = {} # native threads that were seen to be Ruby's: they may outlive its threads
      @usual = others
    end

    # Remembers which native threads are Ruby's, before some of its threads end.
    def note_threads
      Thread.list.each { |thread| @seen[thread.native_thread_id] = true }
    end

    # Why the process cannot be forked from; nil if it can. While it serves, threads that Ruby may have made are not
    # told from others, where they come and go all the time.
    def problem(serving:)
      return Highball.fork_unsafe if Highball.fork_unsafe

      names = staying(serving)
      return if names.length <= @usual.length

      names = names.except(*@usual.keys).values.first(NAMES_TOLD).join(", ")
      "the application has started native threads that are not Ruby's (#{names}), which a fork would lose"
    end

    private

    # The threads, by task, that are none of Ruby's for all of the time, if they are too many.
    def staying(serving)
      names = foreign(serving)
      deadline = now + PATIENCE
      while names.length > @usual.length && now < deadline
        sleep LOOK_EVERY
        names = names.slice(*foreign(serving).keys)
      end
      names
    end

    def foreign(serving)
      serving ? others.reject { |_task, name| name == OURS || NAMED_BY_RUBY.match?(name) } : others
    end

    # Native threads of this process that are none of Ruby's: {task => name}.
    def others
      note_threads
      tasks = Dir.children(TASKS).map(&:to_i) - @seen.keys
      tasks.each_with_object({}) do |task, names|
        names[task] = File.read("#{TASKS}/#{task}/comm").chomp
      rescue SystemCallError
        next # it has ended
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
