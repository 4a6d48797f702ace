# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/open_stream"

# The example whose tokens stream, in each of its forms.
class ChatModelTest < E2ETest
  TOKENS = 30

  def test_each_form_streams_and_leaves_the_pool
    server = serve("chat-model", ready: "/hello", threads: 2)
    %w[each call live].each do |form|
      streams = Array.new(20) { OpenStream.of(server, "/#{form}?tokens=#{TOKENS}&per_second=15") }
      streams.each(&:first)
      wait_for("the #{form} streams to leave") { streaming(server) == 20 }
      assert_equal "hello\n", server.get("/hello").body
      assert_equal [[expected, true]], streams.map(&:whole).uniq, form
    end
    wait_for("no stream") { streaming(server).zero? }
  end

  def test_rails_learns_that_a_client_has_left
    server = serve("chat-model", ready: "/hello", threads: 2)
    streams = Array.new(5) { OpenStream.of(server, "/live?tokens=100000&per_second=20") }
    wait_for("them to leave") { streaming(server) == 5 }
    streams.each(&:close)
    wait_for("the actions to end", within: 5) { streaming(server).zero? }
    refute_includes server.log, "ERROR"
  end

  private

  def streaming(server) = server.status["workers"].sum { |worker| worker["streams"] }

  def expected
    words = %w[The train leaves the station with a long whistle and climbs slowly up the Brocken]
    events = Array.new(TOKENS) { |number| "id: #{number}\ndata: #{words[number % words.size]}\n\n" }
    "#{events.join}event: done\ndata:\n\n"
  end
end
