# frozen_string_literal: true

require_relative "exception_words"
require_relative "request_secrets"
require_relative "slow_request"

module Highball
  # Samples the requests of a worker that go on for long. Reports a request that exceeds the option `slow_request`: when
  # it does, each time when it has taken twice as long, and when it ends.
  #
  # A request is sampled from the age on that ext/highball/src/ages.rs names. All is done by one thread, which sleeps
  # without the GVL. Before each sample it has to wait for the GVL. So a thread that runs Ruby code is seen where it
  # lets others run, after its time slice; and native code that keeps the GVL is seen when it returns.
  class SlowRequests
    # Seconds between two samples: this part of the request's age, within limits.
    PART = 40
    PAUSES = 0.025..2
    # With longer pauses, if samples take more than this part of a CPU.
    MOST_CPU = 0.01
    # Requests that are sampled at a time, the newest of more. Others are reported without samples.
    MOST_SAMPLED = 32
    # Requests that are watched at a time.
    MOST_WATCHED = 256
    # Fibers are old from this age on, in seconds.
    OLD_FIBER = 0.2

    # server:: the Server.
    # seconds:: from which time on a request is slow.
    # log:: the Log for what goes wrong here.
    # report:: is called with the fields of each message `slow`.
    def initialize(server, seconds, log:, &report)
      @server = server
      @ring = server.ring
      @seconds = seconds
      @log = log
      @report = report
      @watched = {} # SlowRequest by ticket
      @next_report = {} # its age at the next report, by ticket
      @cost = @cost_of_last = 0.0
    end

    def start
      @thread = Thread.new do
        guarded { look while @ring.await_old(pause) }
        @done = true
      ensure
        @ring.end_sampling
        start unless @done || @ring.foreign? || !Thread.main.alive? # the application has killed it
      end
      @thread.name = "highball slow requests"
      @thread.report_on_exception = false
      @thread.thread_variable_set(:fork_safe, true) # it ends before the worker is forked from
    end

    # Call it after Ring#stop, when the last request has ended.
    def join
      @thread.join while @thread.alive?
      guarded { look(last: true) }
    end

    # The thread, if it lives.
    def thread = (@thread if @thread&.alive?)

    private

    # The application may have changed what is used here. Requests go on as ever.
    def guarded
      yield unless @given_up
    rescue Errno::EPIPE, Errno::ECONNRESET
      @given_up = true # the supervisor has gone, and this process ends
    rescue StandardError, SystemStackError, NoMemoryError => e
      @given_up = true
      @log.error(:slow_requests_not_sampled, **ExceptionWords.new(e).facts.compact)
    end

    # Microseconds until the next sample; nil: until a request is old.
    def pause
      return if @watched.empty?

      youngest = now - @watched.each_value.map(&:began).max
      # A long pause would hide where a young request goes on.
      recovery = [@cost / MOST_CPU, youngest].min
      (((youngest / PART).clamp(PAUSES.min, PAUSES.max) + recovery) * 1_000_000).round
    end

    def look(last: false)
      began = cpu_seconds(Process::CLOCK_THREAD_CPUTIME_ID)
      @gc = ::GC.total_time / 1e9
      @now = now
      watch_old unless last
      note_ends
      sample unless last
      report
      # A collection of garbage in this thread would have come in another.
      collected = (::GC.total_time / 1e9) - @gc
      cost = [cpu_seconds(Process::CLOCK_THREAD_CPUTIME_ID) - began - collected, 0].max
      # The smaller one of two: the first sample of a worker runs cold code.
      @cost = [cost, @cost_of_last].min
      @cost_of_last = cost
    end

    def note_ends
      @ring.ended_requests.each { |ticket, ended| @watched[ticket]&.end_at(ended / 1e6) }
      fibers = requests_on_fibers
      @watched.each_value do |request|
        request.end_at(@now) unless request.ended? || @ring.open?(request.ticket) || fibers.key?(request.ticket)
      end
    end

    # The open requests that run on fibers, by ticket.
    def requests_on_fibers = @server.fibers&.open_requests || {}

    def watch_old
      @ring.old_requests.each do |ticket, line, began, (asked, cpu, process_cpu, delayed)|
        clocks = SlowRequest::Clocks.new(asked / 1e6, cpu / 1e9, process_cpu / 1e9, @gc, delayed / 1e6) if cpu.positive?
        add(SlowRequest.new(ticket, line, began / 1e6, clocks))
      end
      requests_on_fibers.each do |ticket, request|
        next if @watched.key?(ticket) || @now - request.began < OLD_FIBER || @ring.stream?(ticket)

        add(SlowRequest.new(ticket, RequestSecrets.line(request.env), request.began))
      end
    end

    def add(request)
      return if @watched.length >= MOST_WATCHED

      @watched[request.ticket] = request
      @next_report[request.ticket] = @seconds
    end

    # Samples the threads and fibers that are at a watched request.
    def sample
      threads = @server.threads_by_ticket
      fibers = requests_on_fibers
      process = cpu_seconds(Process::CLOCK_PROCESS_CPUTIME_ID)
      @watched.each_value.reject(&:ended?).last(MOST_SAMPLED).each do |request|
        thread = threads[request.ticket]
        fiber = fibers[request.ticket]&.fiber
        next unless @ring.open?(request.ticket) # it has ended just now
        next sample_thread(request, thread, process) if thread
        next sample_fiber(request, fiber, process) if fiber

        request.end_at(@now) # the application has its connection, without a thread
      end
    end

    def sample_thread(request, thread, process)
      clocks = clocks_of(thread, process) or return
      runs = thread.status == "run" || Native.steps_aside?(thread.native_thread_id)
      request.sample(thread.method(:backtrace_locations), clocks, runs: runs)
    end

    # The CPU time of the fibers' thread is that of the fiber that runs.
    def sample_fiber(request, fiber, process)
      runs = fiber.equal?(@server.fibers.running_fiber)
      thread = @server.fibers.thread
      clocks = clocks_of(thread, process) or return
      locations = (runs ? thread : fiber).method(:backtrace_locations)
      request.sample(locations, clocks, runs: runs, has_cpu: runs)
    end

    # nil: the thread has ended just now.
    def clocks_of(thread, process)
      cpu, delayed = Native.thread_clocks(thread.native_thread_id)
      SlowRequest::Clocks.new(@now, cpu / 1e9, process, @gc, delayed / 1e6) if cpu
    end

    # Answers that have left their places are streams, and connections that the application has taken over are its own:
    # they are long by design.
    def report
      @watched.delete_if do |ticket, request|
        next forget(ticket) if @ring.stream?(ticket)

        tell(ticket, request)
        request.ended? && forget(ticket)
      end
    end

    def tell(ticket, request)
      age = request.seconds(@now)
      return if age < @seconds || !(request.ended? || age >= @next_report[ticket])

      @next_report[ticket] = age * 2
      @report.call(request.report(@now))
    end

    def forget(ticket)
      @next_report.delete(ticket)
      true
    end

    def cpu_seconds(clock) = Process.clock_gettime(clock)

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
