# frozen_string_literal: true

require_relative "fiber_checks"
require_relative "fiber_scheduler"
require_relative "ruby31/select_in_fibers" if RUBY_VERSION < "3.2"

module Highball
  # Requests of a worker that run on fibers, all of them in one thread: while one waits, the others go on.
  class RequestFibers
    # Seconds of computation after which the log names a fiber, because all others wait for it.
    LONG_TURN = 0.5
    # Many fibers may live for as long at the same time. Each gives back the memory of its stack, as Ruby 3.1 keeps it.
    # (It takes two microseconds.)
    LONG_LIFE = 1
    # A request that is not answered yet: its fiber, when it began, in seconds of the monotonic clock, and its env.
    OpenRequest = Struct.new(:fiber, :began, :env)
    STACK_BYTES = RubyVM::DEFAULT_PARAMS.fetch(:fiber_machine_stack_size)

    # scheduler:: the name of the class that schedules the fibers, or nil: Highball's.
    # name:: of the thread.
    # serve:: is called in a fiber with each request that #take was given.
    def initialize(scheduler:, name:, log:, &serve)
      IO.singleton_class.prepend(SelectInFibers) if defined?(SelectInFibers)
      @class = scheduler ? Object.const_get(scheduler) : FiberScheduler
      @name = name
      @log = log
      @serve = serve
      @arrived = Thread::Queue.new
      @begun = Thread::Queue.new # has something while fibers are open
      @open = {} # OpenRequest by ticket: changed by the fibers' thread
      @stopping = false
    end

    def start
      FiberChecks.problems.each { |problem| @log.error(:fibers_unsafe, why: problem) } unless @thread
      @thread = Thread.new { run }
      @thread.name = @name
      @thread.report_on_exception = false
      @watch = Thread.new { watch } if @class == FiberScheduler
      # They end before the worker is forked from.
      [@thread, @watch].compact.each { |thread| thread.thread_variable_set(:fork_safe, true) }
    end

    # Takes a request from a serving thread.
    def take(ticket, *request) = @arrived << [ticket, *request]

    # Call it after the last #take. Returns when all requests are answered.
    def finish
      @stopping = true
      @arrived << nil
      @thread.join while @thread.alive? # another one may have replaced it
      @watch&.kill&.join
    end

    def busy? = !(@open.empty? && @arrived.empty?)

    # Raises an exception in the fiber of a request. Other schedulers than Highball's cannot do it from another thread.
    def interrupt(ticket, error)
      fiber = @open[ticket]&.fiber or return
      @scheduler.raise_in(fiber, error) if @scheduler.respond_to?(:raise_in)
    end

    # Returns the tickets of the open requests.
    def tickets = @open.keys

    # Returns the open requests, by ticket.
    def open_requests = @open.dup

    # Returns the fiber that runs, or nil: none does, or the scheduler does not tell.
    def running_fiber
      @scheduler.turn_of if @scheduler.respond_to?(:turn_of) && @scheduler.turn_began
    end

    # The thread that all fibers run in.
    attr_reader :thread

    # Returns the backtrace of a request's fiber, and whether the fiber is running.
    def backtrace(ticket)
      fiber = @open[ticket]&.fiber
      runs = !fiber.nil? && fiber.equal?(running_fiber)
      [(runs ? @thread.backtrace : fiber&.backtrace) || [], runs]
    end

    def native_thread_id = @thread.native_thread_id

    private

    def run
      Highball.hooks.run(:thread_start)
      @scheduler = @class.new
      Fiber.set_scheduler(@scheduler)
      Fiber.schedule { accept }
      Fiber.set_scheduler(nil) # runs the fibers, until there is none
    rescue Exception => e # rubocop:disable Lint/RescueException -- the scheduler may be the application's
      @log.error(:fibers_ended, **ExceptionWords.new(e).facts.compact)
    ensure
      start unless @stopping || !Thread.main.alive?
    end

    def accept
      while (ticket, *request = @arrived.pop)
        begin_fiber(ticket, request)
      end
    end

    def begin_fiber(ticket, request)
      Fiber.schedule do
        place = Native.stack_place
        began = Timers.now
        @begun << true if @open.empty?
        @open[ticket] = OpenRequest.new(Fiber.current, began, request.first)
        @serve.call(ticket, *request)
      ensure
        @open.delete(ticket)
        Native.give_back_stack(place, STACK_BYTES) if Timers.now - began > LONG_LIFE
      end
    end

    # Looks for a fiber that computes and does not let the others run. It sees a turn once.
    def watch
      seen = nil
      loop do
        wait_for_fibers if @open.empty?
        sleep(LONG_TURN)
        began = @scheduler&.turn_began or next
        next if began == seen || Timers.now - began < LONG_TURN

        seen = began
        report_turn(Timers.now - began)
      end
    end

    def wait_for_fibers
      @begun.pop
      @begun.clear
    end

    def report_turn(seconds)
      place = Calls.new(@thread.backtrace || [], App::FOLDER).place
      @log.error(:fiber_computes, seconds: seconds.round(1), at: place&.join(":"), waiting: @open.size - 1)
    end
  end
end
