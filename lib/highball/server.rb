# frozen_string_literal: true

require "stringio"
require_relative "answer"
require_relative "env_template"
require_relative "hijack"

module Highball
  # Serves the application in a worker: N threads claim requests from the ring, call the app, and answer.
  #
  # In reading order: EnvTemplate (what every env has in common), Server (the life of a request in Ruby),
  # Answer and Stream (how a Rack response goes out), Hijack (how a connection is handed over).
  class Server
    # app:: the Rack application (anything that responds to +call+).
    # ring:: Highball::Ring.
    # threads:: how many requests are served at a time.
    # name:: how this worker is called in the log.
    # log:: where exceptions of the app are written to.
    def initialize(app, ring, threads: ring.threads, name: "worker", log: $stderr)
      @app = app
      @ring = ring
      @size = threads
      @name = name
      @log = log
      @threads = []
      @mutex = Mutex.new
      @stopping = false
    end

    # Serves until #stop is called, by another thread or a signal handler. Returns when every request that
    # had been begun has been answered.
    def run
      start
      join
    end

    # Starts the serving threads and returns.
    def start
      @mutex.synchronize { @size.times { |number| start_thread(number) } }
    end

    # Waits until all serving threads have ended.
    def join
      while (thread = threads.find(&:alive?))
        thread.join
      end
    end

    # No more requests are claimed. Safe in a signal handler.
    def stop
      @stopping = true
      @ring.stop
    end

    # The serving threads.
    def threads
      @mutex.synchronize { @threads.dup }
    end

    private

    def start_thread(number)
      thread = Thread.new do
        serve_all
      ensure
        replace(number)
      end
      thread.name = "#{@name} thread #{number + 1}"
      thread.report_on_exception = false
      @threads[number] = thread
    end

    # A thread that the app killed is replaced, so that the worker keeps its size.
    def replace(number)
      @mutex.synchronize { start_thread(number) } unless @stopping
    end

    def serve_all
      template = EnvTemplate.new(threads: @size)
      while (ticket = @ring.claim)
        serve(ticket, template)
      end
    end

    # The life of one request.
    def serve(ticket, template)
      answered = false
      env = @ring.env(ticket, template.env)
      input = env["rack.input"]
      env["rack.hijack"] = Hijack.new(@ring, ticket, env)
      status, headers, body = @app.call(env)
      Answer.send(@ring, ticket, env, status, headers, body)
      answered = true
    rescue Exception => e # rubocop:disable Lint/RescueException -- `exit` and NoMemoryError end a request, never a worker
      failed(ticket, env, e)
    ensure
      # Also when this thread is being killed: the client must not wait for ever.
      @ring.abort(ticket) unless answered
      input.close if input.is_a?(File)
      finished(template, env, status, headers, e) if template.callbacks?
    end

    # The app raised: a 500 if nothing was sent yet, and a log entry either way.
    def failed(ticket, env, error)
      report(error, env)
      return if !@ring.open?(ticket) || @ring.begun?(ticket)

      body = "500 Internal Server Error: the application raised an exception; its log says which.\n"
      headers = { "content-type" => "text/plain; charset=utf-8", "content-length" => body.bytesize.to_s }
      @ring.answer(ticket, 500, headers, [body])
    end

    # The callbacks that the app left in `rack.response_finished` and `rack.after_reply`.
    def finished(template, env, status, headers, error)
      template.take_callbacks do |callback, wants_response|
        wants_response ? callback.call(env, status, headers, error) : callback.call
      rescue StandardError => e
        report(e, env)
      end
    end

    def report(error, env)
      where = env ? "#{env['REQUEST_METHOD']} #{env['PATH_INFO']}" : "a request"
      trace = (error.backtrace || []).map { |line| "\n    #{line}" }.join
      @log.write("#{@name}: #{where} raised #{error.class}: #{error.message}#{trace}\n")
    end
  end
end
