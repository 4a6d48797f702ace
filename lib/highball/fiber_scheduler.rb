# frozen_string_literal: true

require_relative "../highball"
require_relative "descriptor_waits"
require_relative "timers"

module Highball
  # Runs the fibers of one thread: what waits in one of them (for a socket, a process, a lock, a time) lets the others
  # run. (Ruby's interface: Fiber::Scheduler. https://docs.ruby-lang.org/en/3.3/Fiber/Scheduler.html)
  #
  # Fiber.set_scheduler(FiberScheduler.new) in a thread, and Fiber.schedule there. Fibers switch by +transfer+, so that
  # a fiber that another one has resumed, as an Enumerator's, can wait, too.
  class FiberScheduler
    # Descriptors that are closed while fibers wait for them are looked for as often. (epoll forgets them.)
    CLOSED_EVERY = 1.0
    # Other threads get the GVL as often, though many fibers are ready.
    PASS_AFTER = 0.002
    EAGAIN = -Errno::EAGAIN::Errno

    Wait = DescriptorWaits::Wait
    private_constant :Wait

    # When the fiber that runs now began to: seconds of the monotonic clock. nil while none does.
    attr_reader :turn_began

    # The fiber that runs now, or ran last.
    attr_reader :turn_of

    def initialize
      @selector = Selector.new
      @timers = Timers.new
      @suspended = {}.compare_by_identity # fibers that wait, and how they do: :transfer or :yield
      @ready = [] # fibers that go on
      @exceptions = {}.compare_by_identity # what is raised in a fiber when it goes on
      @unblocked = [] # fibers, by other threads: Array#push and #shift are atomic
      @waits = DescriptorWaits.new(@selector)
      @process = Process.pid
      @closed = false
    end

    def closed? = @closed

    # Runs until no fiber waits.
    def run
      @thread = Thread.current
      @root = Fiber.current
      turn until @suspended.empty? && @ready.empty?
    end

    # Ruby calls it at the end of the thread, or when the thread gets another scheduler.
    def scheduler_close
      raise "the scheduler is closed already" if @closed

      run
    ensure
      @closed = true
      freeze # another thread may still unblock
    end

    def close
      Fiber.scheduler == self ? Fiber.set_scheduler(nil) : scheduler_close
    end

    # Raises an exception in a fiber, once it does not run. Safe in other threads.
    def raise_in(fiber, exception)
      @unblocked.push([fiber, exception])
      @selector.wake
    end

    # --- What Ruby calls, each in the fiber that is to wait.

    def fiber(&)
      fiber = Fiber.new(blocking: false, &)
      begin_fiber(fiber)
      fiber
    end

    def kernel_sleep(seconds = nil)
      suspend(seconds)
      true
    end

    # Returns whether #unblock ended it, and not the time.
    def block(_blocker, seconds = nil) = suspend(seconds) != :timeout

    # Safe in other threads, as for +raise_in+.
    def unblock(_blocker, fiber)
      @unblocked.push(fiber)
      @selector.wake unless @thread.equal?(Thread.current)
    end

    # Returns the events that have come, or false once the time is over.
    def io_wait(io, events, seconds = nil)
      wait = Wait.new(Fiber.current, io, events, 0)
      return events unless @waits.watch(wait)

      begin
        suspend(seconds)
        wait.come.zero? ? false : wait.come
      ensure
        @waits.forget(wait)
      end
    end

    # From Ruby 3.2 on, it gets the arguments that IO.select was given.
    def io_select(readables, writables = nil, exceptables = nil, seconds = nil)
      wanted = { IO::READABLE => readables, IO::WRITABLE => writables, IO::PRIORITY => exceptables }
      waits = wanted.flat_map { |events, ios| Array(ios).map { |io| Wait.new(Fiber.current, io, events, 0) } }
      wait_for_any(waits, seconds)
      come = wanted.keys.map do |events|
        waits.select { |wait| wait.events == events && !wait.come.zero? }.map(&:io)
      end
      come unless come.all?(&:empty?)
    end

    def io_read(io, buffer, least, offset = 0)
      transfer_bytes(io, IO::READABLE, least, offset) { |at| @selector.read(io.fileno, buffer, at) }
    end

    def io_write(io, buffer, least, offset = 0)
      transfer_bytes(io, IO::WRITABLE, least, offset) { |at| @selector.write(io.fileno, buffer, at) }
    end

    def timeout_after(seconds, exception, message)
      fiber = Fiber.current
      error = nil
      timer = @timers.add(seconds) do
        error = exception.exception(message)
        interrupt(fiber, error)
      end
      yield seconds
    ensure
      @timers.cancel(timer) if timer
      @exceptions.delete(fiber) if error && @exceptions[fiber].equal?(error)
    end

    # Ruby 3.5 calls it in the thread that closes an IO.
    def fiber_interrupt(fiber, exception) = raise_in(fiber, exception)

    def process_wait(pid, flags)
      Thread.new { Process::Status.wait(pid, flags) }.value
    end

    # The system's resolver: it knows /etc/hosts and nsswitch.conf.
    def address_resolve(hostname)
      Thread.new { Addrinfo.getaddrinfo(hostname, nil, nil, :STREAM).map(&:ip_address).uniq }.value
    end

    private

    # --- Switching

    # The fiber waits until something makes it ready, and the others run meanwhile. Returns :timeout after that time.
    def suspend(seconds = nil)
      renew unless @process == Process.pid
      fiber = Fiber.current
      over = false
      timer = seconds && @timers.add(seconds) { over = make_ready(fiber) }
      @suspended[fiber] = @in_loop ? :transfer : :yield
      @turn_began = nil
      @in_loop ? @root.transfer : Fiber.yield
      :timeout if over
    ensure
      @timers.cancel(timer) if timer
      @suspended.delete(fiber)
    end

    # Returns whether the fiber has waited.
    def make_ready(fiber)
      how = @suspended.delete(fiber) or return false
      @ready << [fiber, how]
      true
    end

    # Raises in a fiber that does not run.
    def interrupt(fiber, exception)
      return unless fiber.alive?

      if make_ready(fiber) || @ready.any? { |ready, _| ready.equal?(fiber) }
        @exceptions[fiber] = exception
      else # it has resumed another one, which waits
        as_turn_of(fiber) { fiber.raise(exception) }
      end
    end

    # A new fiber runs at once. Its caller goes on when it waits for the first time.
    def begin_fiber(fiber)
      caller = Fiber.current
      if @in_loop
        @suspended[caller] = :transfer
        make_ready(caller)
        @turn_of = fiber
        fiber.transfer
      elsif caller.blocking?
        @thread = Thread.current
        @root = caller
        as_turn_of(fiber) { fiber.transfer }
      else # the root fiber has resumed the caller itself, and goes on when that yields
        fiber.resume
      end
    end

    def go_on(fiber, how)
      return unless fiber.alive?

      as_turn_of(fiber) do
        exception = @exceptions.delete(fiber)
        if exception then fiber.raise(exception)
        elsif how == :transfer then fiber.transfer
        else
          fiber.resume
        end
      end
    end

    # In the root fiber.
    def as_turn_of(fiber)
      @in_loop = true
      @turn_of = fiber
      @turn_began = Timers.now
      yield
    ensure
      @turn_began = nil
      @in_loop = false
    end

    # --- The loop

    def turn
      take_unblocked
      @timers.run_due
      run_ready
      return if @suspended.empty? && @ready.empty?

      events = @selector.select(rest)
      events.each_slice(2) { |descriptor, come| @waits.note(descriptor, come) { |fiber| make_ready(fiber) } }
      end_closed
    end

    # How long nothing is to do.
    def rest
      return 0.0 unless @ready.empty? && @unblocked.empty?

      [@timers.rest, (CLOSED_EVERY unless @waits.empty?)].compact.min
    end

    # Fibers that become ready meanwhile have their turn after the next look at descriptors.
    def run_ready
      pass_at = Timers.now + PASS_AFTER
      @ready.size.times do
        fiber, how = @ready.shift
        go_on(fiber, how)
        next if (now = Timers.now) < pass_at

        Thread.pass
        pass_at = now + PASS_AFTER
      end
    end

    def take_unblocked
      until @unblocked.empty?
        fiber, exception = @unblocked.shift
        exception ? interrupt(fiber, exception) : make_ready(fiber)
      end
    end

    # --- Descriptors

    def wait_for_any(waits, seconds)
      watched = waits.select { |wait| @waits.watch(wait) }
      (waits - watched).each { |wait| wait.come = wait.events }
      suspend(watched.size == waits.size ? seconds : 0)
    ensure
      watched&.each { |wait| @waits.forget(wait) }
    end

    # Fibers that wait for closed IOs get the error of threads that do.
    def end_closed
      now = Timers.now
      return if @waits.empty? || (@looked && now < @looked + CLOSED_EVERY)

      @looked = now
      @waits.each_closed { |fiber| interrupt(fiber, IOError.new("stream closed in another thread")) }
    end

    # Ruby reads and writes with a least number of bytes of 0 when it would wait without a scheduler.
    def transfer_bytes(io, events, least, offset)
      done = 0
      loop do
        moved = yield offset + done
        if moved == EAGAIN && least.positive? then io_wait(io, events)
        elsif moved == -Errno::EINTR::Errno then next
        elsif moved.negative? then return done.zero? ? moved : done
        else
          done += moved
          return done if moved.zero? || done >= least
        end
      end
    end

    # In a process that a fiber has forked, the other fibers are not to run: they are the parent's.
    def renew
      @process = Process.pid
      @selector = Selector.new
      @timers = Timers.new
      @waits = DescriptorWaits.new(@selector)
      [@suspended, @ready, @exceptions, @unblocked].each(&:clear)
    end
  end
end
