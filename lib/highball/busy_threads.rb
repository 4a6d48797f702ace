# frozen_string_literal: true

require_relative "app"
require_relative "calls"

module Highball
  # Backtraces of the threads that are serving a request. The supervisor asks for them when a request times out.
  module BusyThreads
    # Limits on threads and lines, so that everything fits into one message.
    MOST = 8
    LINES = 20

    # The busy threads of the server with this name, as fields of the message `threads`.
    def self.of(server_name)
      serving = Thread.list.select { |thread| thread.name&.start_with?("#{server_name} thread ") }
      serving.reject { |thread| idle?(thread) }.first(MOST).map { |thread| describe(thread) }
    end

    def self.describe(thread)
      calls = Calls.new(thread.backtrace, App::FOLDER)
      file, line = calls.place
      { name: thread.name, file: file, line: line, backtrace: calls.first(LINES) }
    end

    # Whether the thread waits in the ring for a request.
    def self.idle?(thread)
      innermost = thread.backtrace_locations(0, 1)&.first
      innermost.nil? || innermost.base_label == "claim"
    end

    private_class_method :describe, :idle?
  end
end
