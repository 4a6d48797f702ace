# frozen_string_literal: true

require_relative "../support/server_test_case"

# Responses of applications, and the answers that they become (Rack SPEC, "The Response").
class AnswerTest < ServerTestCase
  PLAIN = { "content-type" => "text/plain" }.freeze

  # A body whose calls are counted.
  class Body
    attr_reader :closed

    def initialize(*parts)
      @parts = parts
      @closed = 0
    end

    def each(&block) = @parts.each(&block)
    def close = @closed += 1
  end

  class Raising < Body
    def each
      super
      raise "the body broke"
    end
  end

  class ArrayLike < Body
    def to_ary = @parts
  end

  class NoArray < Body
    def to_ary = nil
  end

  class OnDisk < Body
    def initialize(path, *parts)
      super(*parts)
      @path = path
    end

    def to_path = @path
  end

  # The Hash that Rack's middleware likes: it knows its keys in any case.
  def racks_own(headers)
    Rack.release < "3" ? Rack::Utils::HeaderHash.new(headers) : Rack::Headers[headers]
  end

  # --- heads

  def test_statuses
    assert_equal 201, answer_of(201, {}, []).status
    assert_equal 404, answer_of("404", {}, []).status
    assert_equal 999, answer_of(999, {}, []).status
  end

  def test_statuses_that_are_none
    [nil, "no number", -1, 0, 99, 100, 103, 1000, 2**70].each do |status|
      assert_equal 500, answer_of(status, {}, []).status, status.inspect
    end
    assert_match(/the status of a response must be/, log)
  end

  def test_headers_of_all_shapes
    shapes = { "x-list" => %w[a b], "x-lines" => "a\nb", "x-empty" => "", "x-none" => [], "x-number" => 7,
               :"x-symbol" => :s, "x-nil" => nil, "x-mixed" => ["a", 1], "rack.session" => "for middleware" }
    fields = answer_of(200, shapes, []).head.fields
    assert_equal [%w[x-list a], %w[x-list b], %w[x-lines a], %w[x-lines b], ["x-empty", ""], %w[x-number 7],
                  %w[x-symbol s], ["x-nil", ""], %w[x-mixed a], %w[x-mixed 1]], fields
  end

  def test_headers_that_are_no_plain_hash
    subclass = Class.new(Hash)
    [[%w[a 1], %w[b 2]], subclass["a", "1", "b", "2"], { "a" => "1", "b" => "2" }.compare_by_identity,
     { "a" => "1", "b" => "2" }.freeze, racks_own("a" => "1", "b" => "2")].each do |headers|
      assert_equal [%w[a 1], %w[b 2]], answer_of(200, headers, ["x"]).head.fields, headers.class
    end
  end

  def test_headers_that_cannot_be_sent
    [{ "a b" => "1" }, { "" => "1" }, { "a" => "1\r\n2" }, { "a" => "1\0" }, { "a:" => "1" }, nil, 7,
     { "a" => "x" * 70_000 }].each do |headers|
      answer = answer_of(200, headers, ["x"])
      assert_equal [500, nil], [answer.status, answer.head&.[]("a")], headers.inspect[0, 50]
    end
    assert_match(/a b.* is not the name of a header field/, log)
  end

  # --- bodies

  def test_an_array_of_strings_goes_out_whole
    answer = answer_of(200, PLAIN, ["one ", "", "two"])
    assert_equal [%i[head body body end], "one two"], [answer.kinds, answer.body]
  end

  def test_other_bodies_are_asked_for_each_and_closed_once
    [Body, ArrayLike, NoArray].each do |kind|
      body = kind.new("one ", "", "two")
      assert_equal "one two", answer_of(200, PLAIN, body).body
      wait_for("close of #{kind}") { body.closed == 1 }
    end
  end

  def test_arrays_with_a_mind_of_their_own
    closing = ["text"]
    closes = 0
    closing.define_singleton_method(:close) { closes += 1 }
    assert_equal "text", answer_of(200, PLAIN, closing).body
    wait_for("close") { closes == 1 }
    shouting = Class.new(Array) { def each = super { |part| yield part.upcase } }
    assert_equal "TEXT", answer_of(200, PLAIN, shouting.new(["text"])).body
  end

  def test_a_large_body_is_streamed
    large = Random.new(1).bytes(300_000)
    assert_equal large, answer_of(200, PLAIN, [large]).body
    assert_equal large, answer_of(200, PLAIN, large.scan(/.{1,7000}/mn)).body
    assert_equal large, answer_of(200, PLAIN, Body.new(large)).body
  end

  def test_the_length_of_a_large_array_is_known
    large = ["\u00e9" * 50_000, "x"]
    answers = [answer_of(200, PLAIN, large), ask({ "REQUEST_METHOD" => "HEAD" }),
               answer_of(200, { "Content-Length" => "1" }, large), answer_of(204, {}, large),
               answer_of(200, PLAIN, Body.new(*large))]
    assert_equal(["100001", "100001", nil, nil, nil], answers.map { |answer| answer.head["content-length"] })
  end

  def test_a_large_head_before_a_body
    answer = answer_of(200, { "x-large" => "v" * 60_000 }, Body.new("b" * 30_000))
    assert_equal [60_000, 30_000], [answer.head["x-large"].bytesize, answer.body.bytesize]
  end

  def test_an_empty_body_has_a_head
    [[], Body.new, Body.new(""), [""]].each { |body| assert_equal 200, answer_of(200, PLAIN, body).status }
  end

  def test_a_body_of_something_else_than_strings_is_an_error
    [[1], [nil], Body.new(:symbol), ArrayLike.new(2.0)].each do |body|
      answer = answer_of(200, PLAIN, body)
      assert_equal [500, true], [answer.status, answer.complete?], body.inspect
    end
    assert_match(/must consist of Strings; there was a Integer/, log)
    late = answer_of(200, PLAIN, Body.new("a", 1))
    assert_equal [200, :abort], [late.status, late.kinds.last]
  end

  def test_no_body
    [nil, 42, "a string", Object.new].each { |body| assert_equal 500, answer_of(200, PLAIN, body).status }
    assert_match(/must respond to each or call, and Integer does not/, log)
  end

  def test_a_body_that_fails_is_closed
    [Raising.new, Raising.new("a beginning")].each do |body|
      answer = answer_of(200, PLAIN, body)
      wait_for("close") { body.closed == 1 }
      assert_equal(body.instance_variable_get(:@parts).empty? ? [500, :failure] : [200, :abort],
                   [answer.status, answer.kinds.last])
    end
  end

  def test_a_close_that_fails_does_not_spoil_the_answer
    body = Body.new("text")
    body.define_singleton_method(:close) { raise "the close broke" }
    answer = answer_of(200, PLAIN, body)
    assert_equal [200, "text", true], [answer.status, answer.body, answer.complete?]
    wait_for("the log") { log.include?("the close broke") }
    assert_equal 200, ask.status
  end

  def test_head_requests_get_no_body
    body = Body.new("text")
    serve { [200, PLAIN, body] }
    answer = ask({ "REQUEST_METHOD" => "HEAD" })
    assert_equal %i[head end], answer.kinds
    wait_for("close") { body.closed == 1 }
  end

  # --- files

  def test_a_file_goes_out_as_a_descriptor
    body = OnDisk.new(__FILE__, "not asked")
    answer = answer_of(200, PLAIN, body)
    assert_equal %i[head file end], answer.kinds
    assert_equal [0, File.size(__FILE__)], answer.frames[1].last.unpack("Q<2")
    assert_equal File.binread(__FILE__), @front.receive_descriptor(File).read
    wait_for("close") { body.closed == 1 }
  end

  def test_what_is_no_file_is_asked_for_each
    Dir.mktmpdir do |dir|
      pipe = File.join(dir, "pipe").tap { |path| File.mkfifo(path) }
      [pipe, dir, File.join(dir, "missing"), nil].each do |path|
        assert_equal "by each", answer_of(200, PLAIN, OnDisk.new(path, "by each")).body, path.inspect
      end
    end
  end

  # --- streaming bodies

  def test_a_streaming_body_reads_and_writes
    serve do
      [200, PLAIN, lambda { |stream|
        stream << "read: " << stream.read(5)
        stream.write(" ", stream.read)
        stream.flush
        stream.close_write
        stream.close
      }]
    end
    answer = ask({}, body: "early late")
    assert_equal ["read: early  late", true], [answer.body, answer.complete?]
    assert_empty log
  end

  def test_a_closed_stream_refuses
    seen = []
    serve do
      [200, PLAIN, lambda { |stream|
        stream.close_write
        seen << stream.closed?
        stream.close
        seen << stream.closed?
        seen << assert_raises(IOError) { stream.write("x") }.message
        seen << assert_raises(IOError) { stream.read }.message
      }]
    end
    assert_equal "", ask.body
    assert_equal [false, true, "not opened for writing", "not opened for reading"], seen
  end

  def test_a_stream_that_is_kept_too_long_writes_nowhere
    kept = nil
    serve { |env| [200, PLAIN, env["PATH_INFO"] == "/" ? ->(stream) { kept = stream } : ["untouched"]] }
    ask
    other = place({ "PATH_INFO" => "/other" })
    assert_raises(IOError) { kept.write("into another answer") }
    assert_equal "untouched", answer_to(other).body
    assert_raises(IOError) { kept.write("after it") }
  end

  # --- taking the connection

  def test_hijack_gives_the_same_socket_every_time_and_nothing_after_the_answer
    env = nil
    serve do |given|
      env = given
      env["rack.hijack"].call.equal?(env["rack.hijack"].call) ? [200, {}, []] : raise("two sockets")
    end
    assert_equal %i[hijack end], ask.kinds
    serve { |given| [200, {}, (env = given).values.first(0)] }
    ask
    assert_raises(IOError) { env["rack.hijack"].call }
  end

  # --- a client that is slow, or gone

  def test_a_slow_client_makes_the_worker_wait
    chunks = 0
    parts = Enumerator.new { |yielder| 100.times { yielder << ("x" * 10_000).tap { chunks += 1 } } }
    serve { [200, PLAIN, parts] }
    placed = place
    wait_for("the area to fill") { @front.written(placed) > 55_000 }
    @front.wake
    assert_operator chunks, :<=, 8
    assert_equal 1_000_000, answer_to(placed).body.bytesize
  end

  def test_a_client_that_leaves_ends_the_body
    body = Body.new(*(["x" * 10_000] * 100))
    serve { [200, PLAIN, body] }
    placed = place
    wait_for("the area to fill") { @front.written(placed) > 55_000 }
    @front.cancel(placed)
    answer = answer_to(placed)
    assert_operator answer.body.bytesize, :<, 200_000
    assert_equal 1, body.closed
    assert_empty log
  end

  def test_a_streaming_body_learns_that_the_client_left_and_nothing_is_logged
    serve { [200, PLAIN, ->(stream) { loop { stream.write("x" * 10_000) } }] }
    placed = place
    wait_for("the area to fill") { @front.written(placed) > 55_000 }
    @front.cancel(placed)
    assert_equal :abort, answer_to(placed).kinds.last
    assert_empty log
  end
end
