# frozen_string_literal: true

require_relative "hijack"
require_relative "stream"

module Highball
  # How a Rack response goes out (Rack SPEC, "The Response"). The body's +close+ is always called.
  class Answer
    # Most responses are an Array of Strings under a Hash of Strings: one call writes them whole. Anything
    # else takes the long way, #deliver.
    def self.send(ring, ticket, env, status, headers, body)
      return if body.instance_of?(Array) && ring.answer(ticket, status.to_i, headers, body)

      begin
        new(ring, ticket, env, status.to_i, headers, body).deliver
      ensure
        body.close if body.respond_to?(:close)
      end
      ring.finish(ticket)
    end

    def initialize(ring, ticket, env, status, headers, body)
      @ring = ring
      @ticket = ticket
      @env = env
      @status = status
      @headers = headers
      @body = body
    end

    def deliver
      return if @ring.hijacked?(@ticket) # a full hijack: the response is ignored
      return if whole?

      @headers, hijack = usual_headers
      if hijack then hand_over(hijack)
      elsif @env["REQUEST_METHOD"] == "HEAD" then head
      elsif @body.respond_to?(:to_path) then file
      elsif @body.respond_to?(:each) then each
      elsif @body.respond_to?(:call) then call
      else raise TypeError, "the body of a response must respond to each or call, and #{@body.class} does not"
      end
    end

    private

    # The original stays what is closed; its Array, if it has one, is what is sent. (The body of Rails 6.1
    # answers `to_ary` with nil, and wants to be asked for `each`.)
    def whole?
      parts = @body.to_ary if @body.respond_to?(:to_ary)
      return false unless parts

      @body = parts
      @ring.answer(@ticket, @status, @headers, parts)
    end

    # Header names and values as Strings or Arrays of Strings, and the callable of a partial hijack.
    def usual_headers
      usual = {}
      hijack = nil
      @headers.each do |name, value|
        if name == "rack.hijack" then hijack = value
        else usual[name.to_s] = value.is_a?(Array) ? value.map(&:to_s) : value.to_s
        end
      end
      [usual, hijack]
    end

    # Partial hijack: the head goes out, then the app has the connection.
    def hand_over(callable)
      head(hijack: true)
      callable.call(Hijack.take_over(@ring, @ticket))
    end

    def file
      File.open(@body.to_path, "rb") do |file|
        stat = file.stat
        return each unless stat.file?

        head
        @ring.file(@ticket, file.fileno, 0, stat.size)
      end
    end

    # The head waits for the first chunk, so that a body that fails at once can still become a 500.
    def each
      @body.each do |chunk|
        head unless @ring.begun?(@ticket)
        break unless @ring.write(@ticket, chunk)
      end
      head unless @ring.begun?(@ticket)
    end

    # A streaming body (Rack 3). After an upgrade it has the connection itself.
    def call
      return hand_over(@body) if @status == 101

      head
      @body.call(Stream.new(@ring, @ticket, @env["rack.input"]))
    end

    def head(hijack: false)
      @ring.head(@ticket, @status, @headers, hijack)
    end
  end
end
