# frozen_string_literal: true

module Highball
  # What a worker has come to hold while it served, and what its forks would share, lose, or repeat: threads,
  # connections, files, child processes, generators of random numbers, and state that may be meant for this process
  # alone. An automatic refork requires that there is none of that
  # (docs/decisions/0022-reforks-by-default-where-every-check-passes.md).
  class Holdings
    DESCRIPTORS = "/proc/self/fd"
    # Ruby's, which each fork replaces. What applications do with such descriptors involves sockets or threads as well.
    RUBYS = ["anon_inode:[eventpoll]", "anon_inode:[eventfd]"].freeze
    # It is started again where it is missing (the gem timeout).
    TIMEOUT_THREAD = "Timeout stdlib thread"
    # Time for threads that requests have started to end.
    PATIENCE = 4.0 # seconds
    LOOK_EVERY = 0.05
    # How files are opened that are not only read.
    WRITABLE = File::WRONLY | File::RDWR
    # A writable mapping that is shared, and its path.
    MAPPING = /^\S+ .w.s \S+ \S+ \d+ +(\S.*)$/
    # The most things in a message.
    SHOWN = 3

    # Create it before the application can open anything in this process.
    #
    # state:: the LastingState of the mold; nil without automatic reforks.
    def initialize(state)
      @state = state or return
      @descriptors = descriptors
      @mappings = mappings
      @randoms = {}.compare_by_identity # they are equal if they would draw the same numbers
      randoms.each { |random| @randoms[random] = true }
    end

    # Whatever the block opens is Highball's.
    def own
      return yield unless @state

      before = descriptors
      known = mappings
      yield.tap do
        @descriptors.update(descriptors.reject { |number, link| before[number] == link })
        @mappings |= mappings - known
      end
    end

    # The hooks that run after a fork have run.
    def note_hooks = @state&.note_hooks

    # Why the process should not be forked from; nil if nothing is known.
    #
    # serving:: whether it still serves. What requests have opened may then be closed by their end.
    def problem(serving:)
      return "the worker was forked before refork_after was auto, so its first state is unknown" unless @state

      found = describe_thread(lasting_threads.first) || children.first
      return found if found
      return note_use if serving
      return if kept.empty?

      GC.start # what is not in use any more closes itself
      kept.first(SHOWN).join(", ").then { |all| all unless all.empty? }
    end

    private

    # Nothing is a problem yet.
    def note_use
      @state.note_use
      nil
    end

    def kept = connections_and_files + shared_memory + random_generators + lasting_state

    # A fork does not copy them. `fork_safe` is how libraries mark threads that do not matter then, as Rails does.
    def threads
      others = Thread.list - [Thread.main]
      others.reject { |thread| thread.thread_variable_get(:fork_safe) || thread.name == TIMEOUT_THREAD }
    end

    def lasting_threads
      lasting = threads
      deadline = now + PATIENCE
      while lasting.any? && now < deadline
        sleep LOOK_EVERY
        lasting &= threads
      end
      lasting
    end

    def describe_thread(thread)
      "a thread of the application runs (#{thread.inspect[/\A#<Thread:\S+ (.*?)>?\z/m, 1]})" if thread
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # They would be children of the mold alone.
    def children
      pids = Dir.children("/proc/self/task").flat_map { |task| read("/proc/self/task/#{task}/children").split }
      pids.map { |pid| "the application has a child process (#{read("/proc/#{pid}/comm").chomp}, pid #{pid})" }
    end

    # A fork shares the connection, or the file with its position and locks.
    def connections_and_files
      opened = descriptors.reject { |number, link| @descriptors[number] == link || RUBYS.include?(link) }
      opened.filter_map { |number, link| describe(number, link) }
    end

    def describe(number, link)
      return "it keeps a connection open (descriptor #{number}, #{link})" unless link.start_with?("/")

      info = read("/proc/self/fdinfo/#{number}")
      return "it holds a lock on a file (#{link})" if info.match?(/^lock:/)

      "it keeps a file open for writing (#{link})" if changeable?(number, info)
    end

    # Log files are appended to, and devices have no position.
    def changeable?(number, info)
      flags = info[/^flags:\s*(\d+)/, 1].to_s.to_i(8)
      flags.anybits?(WRITABLE) && flags.nobits?(File::APPEND) && File.stat("#{DESCRIPTORS}/#{number}").file?
    rescue SystemCallError
      false # it was closed meanwhile
    end

    # Memory that processes share, of files that may be closed by now.
    def shared_memory
      (mappings - @mappings).map { |path| "it shares memory with other processes (#{path})" }
    end

    def mappings = read("/proc/self/maps").scan(MAPPING).flatten.uniq

    # All forks would draw the same numbers from them.
    def random_generators
      randoms.all? { |random| @randoms[random] } ? [] : ["it keeps a random number generator (Random.new)"]
    end

    def randoms = ObjectSpace.each_object(Random::Base)

    # All forks would go on from there.
    def lasting_state
      @state.changed.map { |name| "its requests have stored something in #{name} that may belong to one process" }
    end

    # {number => what it is}
    def descriptors
      Dir.children(DESCRIPTORS).each_with_object({}) do |number, found|
        found[number] = File.readlink("#{DESCRIPTORS}/#{number}")
      rescue SystemCallError
        next # of this list
      end
    end

    # Empty where there is no such file, or not any more.
    def read(path)
      File.read(path)
    rescue SystemCallError
      ""
    end
  end
end
