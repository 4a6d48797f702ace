# frozen_string_literal: true

require_relative "visitor"

# Requests of many visitors, for tests in which versions have their visitors.
module Visits
  private

  # The versions that these visitors get, over eight connections.
  def visits(server, visitors)
    parts = visitors.each_slice((visitors.length / 8.0).ceil).to_a
    concurrently(parts.length) do |index|
      server.connect { |connection| parts[index].map { |visitor| visitor.version(connection) } }
    end.flatten
  end

  def versions_of(server, *numbers)
    server.connect { |connection| numbers.map { |number| Visitor.numbered(number).version(connection) } }
  end

  # Visits of both versions' visitors during the block: what went wrong. `only`: the version that all should get.
  def during_visits(server, methods: %w[GET POST], only: nil)
    ends = false
    threads = Array.new(6) do |index|
      Thread.new do
        visitor = Visitor.numbered(index * 199)
        failures = []
        until ends
          failures.concat(visit_by(visitor, server, methods.rotate(index).first, only))
          sleep 0.01
        end
        failures
      end
    end
    yield
    ends = true
    threads.flat_map(&:value)
  ensure
    ends = true
  end

  def visit_by(visitor, server, method, only)
    answer = server.connect { |connection| visitor.get(connection, method: method, body: method == "POST" ? "x" : nil) }
    return ["closed"] unless answer
    return ["#{answer.status} #{answer.body}"] if answer.status != 200

    only && answer["x-version"] != only ? ["version #{answer['x-version']}"] : []
  rescue SystemCallError, EOFError, HttpConnection::TimedOut, HttpConnection::BadAnswer => e
    ["#{e.class}: #{e.message}"]
  end
end
