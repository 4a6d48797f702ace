# frozen_string_literal: true

require_relative "app"
require_relative "calls"

module Highball
  # Where the serving threads are that are at a request: the supervisor asks when one is not answered in time.
  module BusyThreads
    # What is told, at most: all has to fit into one message.
    MOST = 8
    LINES = 20

    # In the words of the message `threads`: those of the server with this name.
    def self.of(server_name)
      serving = Thread.list.select { |thread| thread.name&.start_with?("#{server_name} thread ") }
      serving.reject { |thread| idle?(thread) }.first(MOST).map { |thread| told(thread) }
    end

    def self.told(thread)
      calls = Calls.new(thread.backtrace, App::FOLDER)
      file, line = calls.place
      { name: thread.name, file: file, line: line, backtrace: calls.first(LINES) }
    end

    # It waits in the ring for a request.
    def self.idle?(thread)
      innermost = thread.backtrace_locations(0, 1)&.first
      innermost.nil? || innermost.base_label == "claim"
    end

    private_class_method :told, :idle?
  end
end
