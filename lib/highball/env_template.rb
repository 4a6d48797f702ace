# frozen_string_literal: true

require "stringio"
require_relative "version"

module Highball
  # The entries that all envs of a serving thread have in common. The ring copies them and adds those of the request.
  # Shape: Rack SPEC, 2.2 and 3.x.
  class EnvTemplate
    # Entries that fit into an env before its Hash has to grow. Twice as many would cost every request more than
    # growing costs the few that need it: the memory would be too large for malloc's fast lists.
    ROOM = 32

    # The Hash to copy.
    attr_reader :env

    # Files to be closed after the request: the ring appends the one of a large body.
    attr_reader :files

    # multithread:: whether several threads of the worker may serve.
    # others:: entries that are not for every worker.
    def initialize(multithread:, others: {})
      @response_finished = []
      @after_reply = []
      @files = []
      @env = roomy_hash.merge!(common(multithread), self.class.rack3? ? rack3 : rack2, others)
    end

    # For a request that goes on beside the others of its thread: its env gets separate callbacks.
    def separate(env)
      own = dup
      own.enter(env)
      own
    end

    # Whether the last request left files or callbacks. Every request asks this, so it is one question.
    def used?
      !(@files.empty? && @response_finished.empty? && @after_reply.empty?)
    end

    # Yields each callback, and whether it takes env, status, headers and error: in reverse order for
    # `rack.response_finished` (Rack 3 SPEC), in order for `rack.after_reply` (as Puma does).
    def take_callbacks
      @response_finished.reverse_each { |callback| yield callback, true }
      @after_reply.each { |callback| yield callback, false }
    ensure
      @response_finished.clear
      @after_reply.clear
    end

    def close_files
      @files.pop.close until @files.empty?
    end

    def self.rack3?
      defined?(::Rack) && ::Rack.respond_to?(:release) && ::Rack.release.to_i >= 3
    end

    # The empty body of a request. It has nothing to read and cannot be closed, so all requests share one.
    class NoInput < StringIO
      def initialize = super("".b.freeze)
      def close = nil
      def close_read = nil
    end

    protected

    def enter(env)
      @files = []
      env["rack.after_reply"] = @after_reply = []
      @response_finished = []
      env["rack.response_finished"] = @response_finished if self.class.rack3?
    end

    private

    # An empty Hash with room for entries: a cleared Hash keeps its memory, and so do its copies.
    def roomy_hash
      (1..ROOM).to_h { |number| [number, nil] }.clear
    end

    def common(multithread)
      {
        "SCRIPT_NAME" => "",
        "QUERY_STRING" => "",
        "SERVER_PROTOCOL" => "HTTP/1.1",
        "SERVER_SOFTWARE" => "Highball/#{VERSION}",
        "GATEWAY_INTERFACE" => "CGI/1.2",
        "rack.url_scheme" => "http",
        "rack.input" => NoInput.new,
        "rack.errors" => $stderr,
        "rack.multithread" => multithread,
        "rack.multiprocess" => true,
        "rack.run_once" => false,
        "rack.hijack?" => true,
        "rack.after_reply" => @after_reply
      }
    end

    def rack2 = { "rack.version" => [1, 6].freeze }

    def rack3 = { "rack.response_finished" => @response_finished }
  end
end
