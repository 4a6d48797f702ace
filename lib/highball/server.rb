# frozen_string_literal: true

require_relative "../highball"
require_relative "answer"
require_relative "client_certificate"
require_relative "diagnosis"
require_relative "early_hints"
require_relative "env_template"
require_relative "exception_words"
require_relative "hijack"
require_relative "log"
require_relative "request_fibers"
require_relative "request_log"
require_relative "request_secrets"
require_relative "slow_requests"
require_relative "thread_places"

module Highball
  # Interrupts a request that has exceeded its time limit, with the option `timeout_interrupts`. It is no StandardError,
  # so that a plain `rescue` does not keep the request going.
  class RequestTimeout < Exception; end # rubocop:disable Lint/InheritException

  # Serves the application in a worker: its threads claim requests from the ring, call the app, and answer.
  #
  # In reading order: EnvTemplate (what every env has in common), Server (the life of a request in Ruby), ThreadPlaces
  # (how many threads serve), SlowRequests (where their time goes),
  # Answer and Stream (how a Rack response goes out), EarlyHints (what may go before it), Hijack (how a connection is
  # handed over), Diagnosis, ExceptionWords and Log (how exceptions are reported).
  class Server
    # The most bytes about an exception that go to the front (PROTOCOL.md of the ring, FAILURE).
    FAILURE_BYTES = 48 * 1024
    # The entry of an env by which the front marks its probe of a new version, and the most bytes about an exception
    # that it gets as an answer.
    PROBE = "highball.probe"
    PROBE_BYTES = 4096
    # The entry by which a request announces that it waits, as in Puma 8.
    IO_BOUND = "puma.mark_as_io_bound"
    # A request's id, as the front makes and keeps them.
    REQUEST_ID = /\A[\w\-@]{1,255}\z/
    # Where frameworks leave an exception that they have made an error page of.
    EXCEPTIONS = %w[action_dispatch.exception sinatra.error rack.exception].freeze

    # app:: the Rack application (anything that responds to +call+).
    # ring:: Highball::Ring.
    # name:: this worker's name in the names of its threads.
    # log:: the Log for exceptions of the app.
    # development:: whether exceptions also go to the front, for the developer's browser.
    # early_hints:: whether the app may send early hints.
    # timeout_header:: the env key by which the app gets what is left of the time for its answer, or nil.
    # client_certificates:: whether requests may come with the certificate of a client.
    # sendfile:: the Sendfile for headers of the app that name files, or nil.
    # fibers:: whether some requests run on fibers.
    # fiber_scheduler:: the name of the class that schedules them, or nil: Highball's.
    # collector:: the Collector that chooses when garbage is collected, or nil.
    def initialize(app, ring, name: "worker", log: Log.new, development: false,
                   early_hints: false, timeout_header: nil, client_certificates: false, sendfile: nil,
                   collector: nil, fibers: false, fiber_scheduler: nil)
      @app = app
      @ring = Hijack.ring = ring
      @name = name
      @log = log
      @development = development
      @early_hints = early_hints
      @timeout_header = timeout_header
      @client_certificates = client_certificates
      require "openssl" if client_certificates
      @prepares = early_hints || fibers || client_certificates || !timeout_header.nil?
      @sendfile = sendfile
      @collector = collector
      @fibers = (fibers_with(fiber_scheduler) if fibers)
      ring.send_files if sendfile
      @threads = [] # by seat; nil: none
      @left = [] # by seat: whether its request has left its place
      @places = ThreadPlaces.new(ring, log) if ring.most_threads > ring.least_threads
      @mutex = Mutex.new
      @stopping = false
    end

    # Has requests report where their time goes, if they take longer than that. To be called before #run.
    def watch_slow_requests(seconds, &)
      @slow_requests = SlowRequests.new(self, seconds, log: @log, &)
    end

    # Serves until #stop is called, by another thread or a signal handler. Returns when every claimed request has been
    # answered.
    def run
      @joining = Thread.current
      start
      join
    end

    # Starts the serving threads and returns.
    def start
      @fibers&.start
      @slow_requests&.start
      @mutex.synchronize { @ring.least_threads.times { |number| start_thread(number) } }
      start_tending if @places
    end

    # Waits until all serving threads have ended.
    def join
      while (thread = [*threads, @tending].find { |one| one&.alive? })
        thread.join
      end
      @fibers&.finish
      @slow_requests&.join
      @ring.end_turns
    end

    # Stops claiming requests. Safe in a signal handler.
    def stop
      @stopping = true
      @ring.stop
    end

    # A request whose answer goes on for long gives its place back: its thread goes on with it, and another one serves
    # in its place.
    def leave_place(ticket)
      @mutex.synchronize do
        why = @ring.receive_offers
        log(:stream_keeps_thread, nil, why: why) if why
        number = tickets.index(ticket)
        next if !number || @left[number] || !@threads[number]&.alive?

        @left[number] = true # before, as this thread may end its answer at any moment
        @ring.leave_place(ticket) ? fill_place : @left[number] = false
      end
    end

    # The serving threads, and threads whose requests have left their places, by seat; nil where there is none.
    def threads
      @mutex.synchronize { @threads.dup }
    end

    # The number by which the front knows the request that this thread has claimed last.
    def ticket(number) = @ring.ticket(number)

    # The serving threads by the tickets of the requests that they have claimed last.
    def threads_by_ticket
      threads.each_with_index.select { |thread, _| thread&.alive? }.to_h { |thread, number| [ticket(number), thread] }
    end

    # The tickets of all threads: they change with each request.
    def tickets = Array.new(@threads.size) { |number| @ring.ticket(number) }

    # Whether a request is not answered yet.
    def busy? = tickets.any? { |ticket| @ring.open?(ticket) } || @fibers&.busy? || false

    # The RequestFibers, or nil.
    attr_reader :fibers

    # The Highball::Ring.
    attr_reader :ring

    # Threads of Highball that run nothing of the application.
    def waiting_threads = [@tending, @joining, @slow_requests&.thread].select { |thread| thread&.alive? }

    # How many requests go on without a place.
    def streams = @left.count(true) + (@fibers&.tickets&.size || 0)

    # Raises RequestTimeout in the thread that is at this request, if one still is.
    def interrupt(ticket)
      return unless @ring.open?(ticket)

      error = RequestTimeout.new("the request has exceeded its time limit")
      number = tickets.index(ticket)
      number ? threads[number]&.raise(error) : @fibers&.interrupt(ticket, error)
    end

    private

    # Entries that options ask for.
    def add_what_is_asked_for(env, ticket)
      env["rack.early_hints"] = EarlyHints.new(@ring, ticket) if @early_hints
      note_time_left(env) if @timeout_header
      ClientCertificate.describe(env) if @client_certificates
    end

    # What a client sends in this field does not count.
    def note_time_left(env)
      deadline = env["highball.deadline"] or return env.delete(@timeout_header)
      left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
      env[@timeout_header] = format("%.3f", [left, 0].max)
    end

    # Another thread serves in a place that was given back. If there is no room for one, the next stream's thread does
    # when it is done.
    def fill_place
      start_thread(free_seat) unless @stopping || @ring.take_place_back
    rescue ThreadError => e
      report(:thread_not_replaced, e)
    end

    # The request of this thread left its place, and has ended. Returns whether it serves again.
    def rejoin?(number)
      @mutex.synchronize do
        serving = @threads.each_index.count { |seat| @threads[seat] && !@left[seat] }
        @left[number] = false if serving < @ring.places
        !@left[number]
      end
    end

    def free_seat = @threads.index(nil) || @threads.size

    # The tending thread waits until requests queue while the serving threads wait, and then starts another one.
    def start_tending
      @tending = Thread.new do
        nil while @ring.await_shortage && add_place
      ensure
        start_tending unless @stopping || @ring.foreign? || ending?
      end
      @tending.name = "#{@name} threads"
      @tending.thread_variable_set(:fork_safe, true)
    end

    # One more thread serves, if a pool of the application does not limit their number.
    def add_place
      @places.add do
        @mutex.synchronize { start_thread(free_seat) unless @stopping }
      end
      true
    end

    # The thread inherits the mask: interrupts (Thread#kill, Thread#raise, Timeout) reach it only while it serves.
    def start_thread(number)
      thread = Thread.handle_interrupt(Object => :never) { Thread.new { live(number) } }
      thread.name = "#{@name} thread #{number + 1}"
      thread.report_on_exception = false
      thread.thread_variable_set(:fork_safe, true) # it ends before the worker is forked from
      @threads[number] = thread
    end

    # The life of a serving thread. However it ends, its claimed request ends too, and another thread replaces it.
    def live(number)
      Native.join_heap
      Thread.handle_interrupt(Object => :immediate) do
        Highball.hooks.run(:thread_start)
        template = EnvTemplate.new(multithread: @ring.most_threads > 1, others: others)
        @collector&.after_request { @ring.idle? } while serve(number, template) && (!@left[number] || rejoin?(number))
      end
    rescue Exception => e # rubocop:disable Lint/RescueException -- raised by another thread, or too late for its request
      raise if @ring.foreign?

      report(:thread_interrupted, e)
    ensure
      @ring.leave(number)
      replace(number)
    end

    # A thread that the app killed is replaced, so that the worker keeps its size. A thread without a place is not, and
    # neither is a thread that has left its place: it has been replaced already.
    def replace(number)
      return if @ring.foreign? || ending?

      @mutex.synchronize do
        if @left[number] || @ring.withdrawn?(number) then @left[number] = @threads[number] = nil
        elsif !@stopping then start_thread(number)
        end
      end
    end

    # Entries that not every worker's envs have.
    def others
      { **(@sendfile ? Sendfile::ENV : {}), **(@places ? { IO_BOUND => method(:expect_wait) } : {}) }
    end

    # What Puma 8 has, too: a request announces that it is going to wait for something else than the GVL.
    def expect_wait
      add_place if @ring.all_serving?
      nil
    end

    # At the end of a process Ruby kills all of its threads, and waits until none is left.
    def ending? = !Thread.main.alive?

    # The life of one request, and the wait for it. Returns whether there may be another one.
    def serve(number, template)
      env = @ring.claim(number, template.env, template.files) or return
      return answered = true if @prepares && taken_by_fiber?(env, @ring.ticket(number), template)

      status, headers, body = @app.call(env)
      note_logged(env, @ring.ticket(number)) if @development
      # Most responses are an Array of Strings under a Hash of Strings: one call writes them whole.
      @ring.reply(number, status, headers, body) or answer(@ring.ticket(number), env, status, headers, body)
      answered = true
    rescue Exception => e # rubocop:disable Lint/RescueException -- `exit` and NoMemoryError end a request, never a worker
      ticket = @ring.ticket(number)
      # In a process that the app has forked, they end that process; without a request, they are for this thread.
      raise if @ring.foreign? || !(env || @ring.open?(ticket))

      failed(ticket, env, e)
      true
    ensure
      # Also when this thread is being killed: the client must not wait for ever.
      @ring.abort(@ring.ticket(number)) unless answered
      finished(template, env, status, headers, e) if template.used?
    end

    def note_logged(env, ticket)
      @ring.note_logged(ticket) if env[RequestLog::LOGGED]
    end

    def fibers_with(scheduler)
      RequestFibers.new(scheduler: scheduler, name: "#{@name} fibers", log: @log) do |*request|
        serve_on_fiber(*request)
      end
    end

    # Adds what options ask for. The front marks requests that are to run on fibers; their connections cannot be taken
    # over.
    def taken_by_fiber?(env, ticket, template)
      add_what_is_asked_for(env, ticket)
      return false unless @fibers && @ring.take_to_fiber(ticket)

      env["rack.hijack?"] = false
      env.delete("rack.hijack")
      @fibers.take(ticket, env, template.separate(env))
      true
    end

    # The life of a request on a fiber.
    def serve_on_fiber(ticket, env, template)
      status, headers, body = @app.call(env)
      note_logged(env, ticket) if @development
      answer(ticket, env, status, headers, body)
      answered = true
    rescue Exception => e # rubocop:disable Lint/RescueException -- as for a request on a thread
      raise if @ring.foreign?

      failed(ticket, env, e)
    ensure
      @ring.abort(ticket) unless answered
      finished(template, env, status, headers, e) if template.used?
    end

    # Sends any other response.
    def answer(ticket, env, status, headers, body)
      reveal_exception(env, body) if status.to_i >= 500 && env.key?(PROBE)
      # (An answer that has left its place as the application's own connection gets no other.)
      return if !@ring.hijacked?(ticket) && @ring.answer(ticket, status, headers, body)

      Answer.send(@ring, ticket, env, status, headers, body, sendfile: @sendfile) do |why|
        log(:file_not_sent, env, why: why)
      end
    end

    # A framework has made an error page of an exception for a probe: the message of the restart is to name it.
    def reveal_exception(env, body)
      error = env.values_at(*EXCEPTIONS).grep(Exception).first or return
      body.close if body.respond_to?(:close)
      raise error
    end

    # The app raised: the front answers 500 if nothing was sent yet, and the exception is logged either way. (A client
    # that disconnects is no error.) It is logged first, because the client's next request may end this process. A
    # connection that the app has taken over ends.
    def failed(ticket, env, error)
      report(:exception_raised, error, env) unless error.is_a?(Stream::ClientGone)
    ensure
      @ring.fail(ticket, words_for_front(env, error))
      Hijack.abandon(ticket) if @ring.hijacked?(ticket)
    end

    # What the front shows on the developer's page, or reports as the reason of a failed restart.
    def words_for_front(env, error)
      return @development ? Diagnosis.text_of(error, FAILURE_BYTES) : "" unless env&.key?(PROBE)

      words = ExceptionWords.new(error)
      place = Calls.new(words.lines, App::FOLDER).place
      text = "#{words.summary}#{" (#{place.join(':')})" if place}"
      Text.cut(RequestSecrets.masked([text], env).first, PROBE_BYTES)
    end

    # Closes the files of the request, and calls the callbacks that the app left in `rack.response_finished` and
    # `rack.after_reply`.
    def finished(template, env, status, headers, error)
      template.close_files
      template.take_callbacks do |callback, wants_response|
        wants_response ? callback.call(env, status, headers, error) : callback.call
      rescue Exception => e # rubocop:disable Lint/RescueException -- the answer has gone: it is the callback that ends
        report(:callback_failed, e, env)
      end
    end

    # Logs an error, with secrets masked: more people read logs than may know passwords.
    def report(event, error, env = nil)
      log(event, env, **ExceptionWords.new(error).facts.compact)
    end

    def log(event, env, **facts)
      masked = RequestSecrets.masked(facts.values, env || {})
      about = env ? { request: RequestSecrets.line(env), id: Log.readable(env["HTTP_X_REQUEST_ID"])[REQUEST_ID] } : {}
      @log.error(event, **about, **facts.keys.zip(masked).to_h)
    end
  end
end
