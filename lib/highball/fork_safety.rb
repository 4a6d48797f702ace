# frozen_string_literal: true

module Highball
  # Whether a worker that has served can be forked from. A fork copies one thread only: the copy would silently lack
  # native threads that are not Ruby's, and locks that they hold would stay locked.
  class ForkSafety
    TASKS = "/proc/self/task"
    # Up to Ruby 3.2, the native thread of a thread that has ended stays for 3 seconds, to be reused.
    PATIENCE = 4.0 # seconds
    LOOK_EVERY = 0.05
    # "worker.rb:84": how Ruby names the native threads of nameless threads.
    NAMED_BY_RUBY = /:\d+\*?\z|\*\z/
    # Highball's own native threads, which end with the last request (ext/highball/src/turns.rs) or before
    # (ext/highball/src/profile.rs).
    OURS = %w[highball-turns highball-ticks].freeze
    # The most names in a message.
    NAMES_SHOWN = 5

    # Create it before the application can start threads: all native threads are then Highball's or Ruby's.
    def initialize
      @seen = {} # native threads known to be Ruby's: they may outlive its threads
      @usual = others
    end

    # Remembers which native threads are Ruby's, before some of its threads end.
    def note_threads
      Thread.list.each { |thread| @seen[thread.native_thread_id] = true }
    end

    # Why the process cannot be forked from; nil if it can.
    #
    # serving:: whether it still serves. Ruby's native threads then come and go all the time, so threads that Ruby may
    #           have started are not counted.
    def problem(serving:)
      return Highball.fork_unsafe if Highball.fork_unsafe

      names = staying(serving)
      return if names.length <= @usual.length

      names = names.except(*@usual.keys).values.first(NAMES_SHOWN).join(", ")
      "the application has started native threads that are not Ruby's (#{names}), which a fork would lose"
    end

    private

    # The threads that are not Ruby's, by task. If there are too many, waits until Ruby's have ended.
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
      serving ? others.reject { |_task, name| OURS.include?(name) || NAMED_BY_RUBY.match?(name) } : others
    end

    # Native threads of this process that are not Ruby's: {task => name}.
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
