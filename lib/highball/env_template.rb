# frozen_string_literal: true

require_relative "version"

module Highball
  # What the envs of one serving thread have in common; the ring copies it and puts a request's own values
  # in. Shape as the Rack SPEC, 2.2 and 3.x, wants it.
  class EnvTemplate
    # The Hash to copy.
    attr_reader :env

    # threads:: serving threads of the worker.
    def initialize(threads:)
      @response_finished = []
      @after_reply = []
      @env = common(threads).merge(self.class.rack3? ? { "rack.response_finished" => @response_finished } : { "rack.version" => [1, 6].freeze })
    end

    # Whether the last request left callbacks.
    def callbacks?
      !(@response_finished.empty? && @after_reply.empty?)
    end

    # Yields each callback and whether it wants env, status, headers and error; the last one first for
    # `rack.response_finished` (Rack 3 SPEC), in order for `rack.after_reply` (Puma's custom).
    def take_callbacks
      @response_finished.reverse_each { |callback| yield callback, true }
      @after_reply.each { |callback| yield callback, false }
    ensure
      @response_finished.clear
      @after_reply.clear
    end

    def self.rack3?
      defined?(::Rack) && ::Rack.respond_to?(:release) && ::Rack.release.to_i >= 3
    end

    # The body of a request that has none. It has no state, so one serves all.
    class NoInput
      def read(length = nil, buffer = nil)
        buffer&.clear
        return nil if length&.positive?

        buffer || +""
      end

      def gets(*) = nil
      def each = nil
      def rewind = 0
      def size = 0
      def eof? = true
      def close = nil
      def external_encoding = Encoding::BINARY
    end

    private

    def common(threads)
      {
        "SCRIPT_NAME" => "",
        "QUERY_STRING" => "",
        "SERVER_PROTOCOL" => "HTTP/1.1",
        "SERVER_SOFTWARE" => "Highball/#{VERSION}",
        "GATEWAY_INTERFACE" => "CGI/1.2",
        "rack.url_scheme" => "http",
        "rack.input" => NoInput.new,
        "rack.errors" => $stderr,
        "rack.multithread" => threads > 1,
        "rack.multiprocess" => true,
        "rack.run_once" => false,
        "rack.hijack?" => true,
        "rack.after_reply" => @after_reply
      }
    end
  end
end
