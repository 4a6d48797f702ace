# frozen_string_literal: true

require_relative "http_connection"

# Clients that keep asking, and an account of how each request ended.
class Load
  # One request: its status, or the error it ended with, and how long it took in seconds.
  Outcome = Struct.new(:result, :seconds)

  # Runs the block while `clients` clients send requests; returns the outcomes of all of them.
  def self.during(server, clients: 8, method: "GET", target: "/", &block)
    load = new(server, clients, method, target)
    load.run(&block)
  end

  def initialize(server, clients, method, target)
    @server = server
    @method = method
    @target = target
    @stopping = false
    @outcomes = Queue.new
    @threads = Array.new(clients) { Thread.new { ask_until_stopped } }
  end

  def run
    Deadline.wait("the load to begin") { @outcomes.length > @threads.length }
    yield self
    @stopping = true
    @threads.each(&:join)
    Array.new(@outcomes.length) { @outcomes.pop }
  ensure
    @threads.each(&:kill)
  end

  # Answers so far.
  def count
    @outcomes.length
  end

  private

  def ask_until_stopped
    connection = nil
    until @stopping
      began = Deadline.now
      result = begin
        connection ||= @server.connect
        ask(connection)
      rescue Errno::ECONNREFUSED
        break # the server has stopped, as far as new clients are concerned
      rescue SystemCallError, EOFError, HttpConnection::TimedOut, HttpConnection::BadAnswer => e
        e.class.name
      end
      @outcomes << Outcome.new(result, Deadline.now - began)
      connection = connection&.close unless result == 200
    end
    connection&.close
  end

  # The status, or "closed" when the connection ended without an answer.
  def ask(connection)
    answer = connection.request(@method, @target, {}, @method == "POST" ? "x" : nil, within: 30)
    answer ? answer.status : "closed"
  end
end
