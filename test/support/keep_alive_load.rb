# frozen_string_literal: true

require_relative "http_connection"

# Clients that each keep one connection and send one request after the other on it, GETs and POSTs, while something
# happens to the server. The application answers with a number, its version, and the body that it was sent.
class KeepAliveLoad
  PAUSE = 0.005 # seconds between two requests of a client: load, and not a benchmark

  # What one client has seen.
  Account = Struct.new(:versions, :failures)

  # Runs the block while the clients are at it; returns the load, to be asked. With `reconnect`, a client whose
  # connection the server has ended with an answer opens another.
  def self.during(server, clients: 20, reconnect: false)
    load = new(server, clients, reconnect)
    yield load
    load.stop
    load
  ensure
    load&.kill
  end

  def initialize(server, clients, reconnect)
    @stopping = false
    @reconnect = reconnect
    @accounts = Array.new(clients) { Account.new([], []) }
    @threads = @accounts.map { |account| Thread.new { ask_until_stopped(server, account) } }
    more(1)
  end

  # Waits until every client that is still there has had so many further answers.
  def more(answers)
    before = @accounts.map { |account| account.versions.length }
    Deadline.wait("#{answers} more answers for each client", within: 60) do
      @accounts.zip(before).all? do |account, count|
        account.versions.length >= count + answers || !account.failures.empty?
      end
    end
  end

  def stop
    @stopping = true
    @threads.each(&:join)
  end

  def kill = @threads.each(&:kill)

  # Answers that were not 200, connections that ended, and bodies that came back changed.
  def failures = @accounts.flat_map(&:failures)

  def answers = @accounts.sum { |account| account.versions.length }

  # The versions that each client met, in order, without repetitions.
  def versions_met = @accounts.map { |account| account.versions.chunk_while { |a, b| a == b }.map(&:first) }

  private

  def ask_until_stopped(server, account)
    number = 0
    until @stopping
      server.connect do |connection|
        until @stopping
          goes_on = ask(connection, account, number += 1)
          sleep PAUSE
          break unless goes_on
        end
      end
    end
  rescue SystemCallError, EOFError, HttpConnection::TimedOut, HttpConnection::BadAnswer => e
    account.failures << "#{e.class}: #{e.message}"
  end

  # One request; whether the connection goes on.
  def ask(connection, account, number)
    body = "body #{number}" if number.even?
    answer = connection.request(body ? "POST" : "GET", "/", {}, body, within: 30)
    raise EOFError, "closed without an answer" unless answer

    version, _, echo = answer.body.partition(" ")
    account.failures << "#{answer.status} #{answer.body}" unless answer.status == 200 && echo == body.to_s
    account.failures << "Connection: #{answer['connection']}" if answer["connection"] && !@reconnect
    account.versions << version.to_i
    answer["connection"].nil?
  end
end
