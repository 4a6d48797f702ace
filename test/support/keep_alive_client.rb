# frozen_string_literal: true

require_relative "http_connection"

# A client that keeps its connection, sends one request after the other on it, and records failures.
class KeepAliveClient
  # A failure. `kind` is :failed, :refused, :reset, :wrong, :closed or :went_back.
  Failure = Struct.new(:kind, :what) do
    def to_s = "#{kind}: #{what}"

    # Failures that a killed worker may cause: a request that it had started is answered 502, which closes the
    # connection, and an answer that it had started breaks off.
    def lost_with_a_worker? = %i[reset closed].include?(kind) || (kind == :failed && what.include?(": 502 "))
  end

  ANSWER_WITHIN = 60 # seconds; a busy machine is no failure
  FAILURES = 20 # that are kept in full
  AFTER_FAILURE = 0.1 # seconds

  attr_reader :answers, :by_status, :failures, :failed, :closes, :longest, :versions_met

  # The block connects. Between two requests the client pauses for a time in the range `pause`, in seconds. Failures of
  # the `allowed` kinds do not count: :closed is a connection that ends with `Connection: close`, :went_back met
  # an older version after a newer one.
  def initialize(questions, pause:, allowed: [], &connect)
    @questions = questions
    @pause = pause
    @allowed = allowed
    @connect = connect
    @answers = 0
    @by_status = Hash.new(0)
    @failures = []
    @failed = Hash.new(0) # by kind
    @closes = 0 # connections that ended with `Connection: close`
    @longest = 0.0 # seconds that an answer took
    @versions_met = [] # without repetitions, on all connections
  end

  # Sends requests until the block returns true.
  def ask_until
    @number = rand(@questions.length)
    until yield
      ask(@questions[(@number += 1) % @questions.length])
      sleep(rand(@pause))
    end
  ensure
    hang_up
  end

  private

  def ask(question)
    @connection ||= open_connection
    began = Deadline.now
    answer = question.ask(@connection, within: ANSWER_WITHIN) or raise EOFError, "ended without an answer"
    @longest = [@longest, Deadline.now - began].max
    check(question, answer)
    @answers += 1
  rescue SystemCallError, EOFError, HttpConnection::TimedOut, HttpConnection::BadAnswer => e
    fail_with(kind_of(e), "#{question}: #{e.class}: #{e.message}")
    hang_up
    sleep AFTER_FAILURE
  end

  def open_connection
    @newest = nil # of the versions that this connection has met
    @connect.call
  end

  def hang_up
    @connection&.close
    @connection = nil
  end

  def check(question, answer)
    @by_status[answer.status] += 1
    if !question.expects?(answer)
      fail_with(:failed, "#{question}: #{answer.status} #{answer.body[0, 500]}")
    elsif !answer["x-version"]
      fail_with(:wrong, "#{question}: no version: #{answer.fields}")
    elsif (difference = question.difference(answer))
      fail_with(:wrong, "#{question}: #{difference}")
    else
      note_version(question, Integer(answer["x-version"]))
    end
    closed(question) if answer["connection"]&.casecmp?("close")
  end

  # The version must not be older than the last one.
  def note_version(question, version)
    if @newest && version < @newest
      fail_with(:went_back, "#{question}: version #{version} on a connection that has met #{@newest}")
    end
    @newest = version
    @versions_met << version unless @versions_met.last == version
  end

  def closed(question)
    fail_with(:closed, "#{question}: Connection: close")
    @closes += 1
    hang_up
  end

  def fail_with(kind, what)
    return if @allowed.include?(kind)

    @failed[kind] += 1
    @failures << Failure.new(kind, "#{Time.now.utc.strftime('%FT%T.%LZ')} #{what}") if @failures.length < FAILURES
  end

  def kind_of(error)
    case error
    when Errno::ECONNREFUSED, Errno::ENOENT then :refused
    when Errno::ECONNRESET, Errno::EPIPE, EOFError then :reset
    when HttpConnection::BadAnswer then :wrong
    else :failed
    end
  end
end
