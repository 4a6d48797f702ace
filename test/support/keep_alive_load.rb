# frozen_string_literal: true

require_relative "keep_alive_client"
require_relative "versioned_app"

# Clients that each keep a connection and send one request after the other on it, during operations on the server.
class KeepAliveLoad
  # Seconds between two requests of a client. Load, and not a benchmark: without them, a test would use all processors.
  PAUSE = ENV["HIGHBALL_TEST_LEVEL"] == "full" ? (0.004..0.006) : (0.02..0.03)

  # Runs the block while the clients send requests; returns the load with its results.
  def self.during(server, **options)
    load = new(server, **options)
    yield load
    load.stop
    load
  ensure
    load&.kill
  end

  # Client after client takes the next of `pauses`, and of `connects`, which connect. For `allowed`, see
  # KeepAliveClient.
  def initialize(server, clients: 20, questions: VersionedApp::QUESTIONS, pauses: [PAUSE], allowed: [],
                 connects: [-> { server.connect }])
    @stopping = false
    @clients = Array.new(clients) do |index|
      KeepAliveClient.new(questions, pause: pauses[index % pauses.length], allowed: allowed,
                          &connects[index % connects.length])
    end
    @threads = @clients.map { |client| Thread.new { client.ask_until { @stopping } } }
    more(1)
  end

  # Waits until every client has had this number of further answers, except for clients that fail.
  def more(answers, within: 60)
    before = @clients.map(&:answers)
    Deadline.wait("#{answers} more answers for each client", within: within) do
      @clients.zip(before).all? { |client, count| client.answers >= count + answers || client.failures.any? }
    end
  end

  def stop
    @stopping = true
    @threads.each(&:join)
  end

  def kill = @threads.each(&:kill)

  # Answers that were not as they should be, and connections that ended: the first of each client, in order.
  def failures = @clients.flat_map(&:failures).sort_by(&:what)

  # All of them, by kind.
  def failed = sum_of(&:failed)
  def by_status = sum_of(&:by_status)
  def answers = @clients.sum(&:answers)
  def closes = @clients.sum(&:closes)
  def longest = @clients.map(&:longest).max

  # The versions that each client met, in order, without repetitions.
  def versions_met = @clients.map(&:versions_met)

  private

  def sum_of(&account)
    @clients.map(&account).reduce { |sum, one| sum.merge(one) { |_, a, b| a + b } }
  end
end
