# frozen_string_literal: true

require_relative "app"
require_relative "calls"

module Highball
  # Backtraces of the threads that are serving a request. The supervisor asks for them when a request times out.
  module BusyThreads
    # Limits on threads and lines, so that everything fits into one message.
    MOST = 8
    LINES = 20

    # The busy threads and fibers of a Server, as fields of the message `threads`.
    #
    # all::   the application's other threads, too
    # first:: tickets of requests that come before the others, of which there may be too many
    def self.of(server, all: false, first: [])
      serving = server.threads
      busy = serving.each_with_index.select { |thread, _| thread&.alive? && !idle?(thread) }
      threads = busy.to_h { |thread, number| [server.ticket(number), thread] }
      tickets = threads.keys + (server.fibers&.tickets || [])
      places = ((first & tickets) | tickets).first(MOST).map do |ticket|
        threads.key?(ticket) ? describe(threads[ticket], ticket) : fiber(server.fibers, ticket)
      end
      return places unless all

      others = (Thread.list - serving.compact - [Thread.current]).map { |thread| describe(thread, 0) }
      (places + others.reject { |place| place[:backtrace].empty? }).first(MOST) # Highball's own have none
    end

    def self.fiber(fibers, ticket)
      backtrace, runs = fibers.backtrace(ticket)
      place(backtrace, name: "fiber", ticket: ticket, tid: fibers.native_thread_id, state: runs ? "run" : "sleep")
    end

    def self.describe(thread, ticket)
      place(thread.backtrace, name: thread.name || "unnamed thread", ticket: ticket, tid: thread.native_thread_id,
                              state: state(thread))
    end

    def self.place(backtrace, **facts)
      calls = Calls.new(backtrace, App::FOLDER)
      file, line = calls.place
      { **facts, file: file, line: line, backtrace: calls.first(LINES) }
    end

    # `run`, `sleep` or `sleep_forever`. (Thread#status does not tell the last two apart. Of a thread that lets others
    # compute in between, Ruby says `sleep`.)
    def self.state(thread)
      Native.steps_aside?(thread.native_thread_id) ? "run" : thread.inspect[/ (\w+)>\z/, 1]
    end

    # Whether the thread waits in the ring for a request.
    def self.idle?(thread)
      innermost = thread.backtrace_locations(0, 1)&.first
      innermost.nil? || innermost.base_label == "claim"
    end

    private_class_method :describe, :fiber, :place, :state, :idle?
  end
end
