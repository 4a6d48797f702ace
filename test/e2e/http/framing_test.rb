# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "corpus/requests"

# Framing as strict as RFC 9112: ambiguous requests are refused before Ruby sees them.
class FramingTest < E2ETest
  # The aim of request smuggling: a second request behind the first one.
  SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n"

  def test_what_is_ambiguous_is_refused_with_the_right_status_and_ends_the_connection
    server = serve("probe", *Corpus::LIMITS)
    assert_operator Corpus::REFUSED.length, :>, 200
    wrong = Corpus::REFUSED.filter_map do |expected, bytes|
      answers = refusal(server, bytes + SMUGGLED)
      "#{bytes[0, 200].inspect}: expected #{expected}, got #{answers.inspect}" unless answers == [expected]
    end
    assert_empty wrong, wrong.join("\n")
    assert_empty reached_ruby(server)
  end

  def test_a_refusal_comes_without_waiting_for_the_rest
    server = serve("probe")
    {
      "GET /#{'a' * 70_000}" => 414,
      "GET /refused HTTP/1.1\r\nHost: test\r\nX: #{'a' * 70_000}" => 431,
      "POST /refused HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 5\r\n\r\n" => 400,
      "POST /refused HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n" => 400
    }.each do |start, status|
      began = Deadline.now
      assert_equal status, server.exchange(start).first.status, start[0, 60]
      assert_operator Deadline.now - began, :<, 5, start[0, 60]
    end
    assert_empty reached_ruby(server)
  end

  def test_unusual_but_valid_requests_are_served
    server = serve("probe")
    wrong = Corpus::ACCEPTED.filter_map do |name, bytes|
      answer = server.connect { |connection| connection.write(bytes).read_response }
      "#{name}: got #{answer&.status} #{answer&.body}" unless answer&.status == 200
    end
    assert_empty wrong, wrong.join("\n")
  end

  def test_answers_to_a_cut_off_request_are_none
    server = serve("probe")
    ["GET", "GET /refused HTTP/1.1\r\nHost: te", "POST /refused HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nabc",
     "POST /refused HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"].each do |start|
      server.connect do |connection|
        connection.write(start)
        connection.socket.close_write
        answer = connection.read_response
        assert_includes [nil, 400, 408], answer&.status, start
      end
    end
    assert_empty reached_ruby(server)
  end

  def test_a_trailer_never_becomes_a_header
    server = serve("probe")
    answer = server.connect { |connection| connection.write(Corpus::ACCEPTED.fetch("trailers")).read_response }
    seen = JSON.parse(answer.body)
    assert_equal "abc", seen["body"]
    assert_equal "3", seen["env"]["CONTENT_LENGTH"]
    refute_includes seen["env"], "HTTP_X_SUM"
  end

  private

  # The statuses that came back until the connection was closed; a reset counts as closed.
  def refusal(server, bytes)
    statuses = []
    server.connect do |connection|
      connection.write(bytes)
      while (answer = connection.read_response(within: 10))
        statuses << answer.status
      end
    rescue Errno::ECONNRESET, Errno::EPIPE
      statuses << :reset if statuses.empty?
    rescue HttpConnection::TimedOut
      statuses << :still_open
    end
    statuses
  end

  def reached_ruby(server)
    targets = JSON.parse(server.get("/count?targets=1").body).fetch("targets")
    targets.reject { |target| target == "GET /" || target.end_with?(" /echo", " /count") }
  end
end
