# frozen_string_literal: true

require_relative "../support/process_facts"
require_relative "../support/server_test_case"

# The worker's end of the ring refuses calls by which an application could confuse the front.
class RingTest < ServerTestCase
  def test_a_ticket_is_good_for_one_answer
    serve_paths
    assert_serves
    ring = @front.ring
    old = (1 << 16) | 0
    [-> { ring.write(old, "x") }, -> { ring.head(old, 200, {}, false) }, -> { ring.answer(old, 200, {}, []) },
     -> { ring.begin(old, 200, {}, "x") }, -> { ring.file(old, 0, 0, 1) }, -> { ring.hijack(old) },
     -> { ring.early_hints(old, {}) }, -> { ring.reply(0, 200, {}, []) }].each { |call| assert_raises(IOError, &call) }
    assert_equal [nil, nil, false, false], [ring.finish(old), ring.abort(old), ring.open?(old), ring.hijacked?(old)]
    [0, 2**62, (1 << 16) | 65_535].each { |invalid| assert_nil ring.abort(invalid) }
    assert_raises(RangeError) { ring.abort(-1) }
    assert_serves
  end

  # Frames out of order are a protocol error to the front.
  def test_frames_out_of_order_are_refused_here
    @front = FakeFront.new
    ring = @front.ring
    @front.place
    ticket = claim
    assert_raises(IOError) { ring.write(ticket, "a body before the head") }
    assert_raises(IOError) { ring.file(ticket, 0, 0, 1) }
    assert ring.head(ticket, 200, {}, false)
    assert_raises(IOError) { ring.head(ticket, 200, {}, false) }
    assert_raises(IOError) { ring.answer(ticket, 200, {}, []) }
    assert_raises(IOError) { ring.hijack(ticket) }
    assert_equal false, ring.early_hints(ticket, { "link" => "late" })
    assert ring.finish(ticket)
  end

  # The callbacks are kept in the thread's template.
  def test_values_that_hardly_change_are_those_of_the_request
    @front = FakeFront.new
    template = { "rack.version" => [1, 6] }
    there = { "REMOTE_ADDR" => "192.0.2.1" }
    envs = [{}, {}, there, there, { "REMOTE_ADDR" => nil }, {}].map { |fields| env_of(template, fields) }
    addresses = [*%w[127.0.0.1] * 2, *%w[192.0.2.1] * 2, nil, "127.0.0.1"]
    assert_equal(addresses, envs.map { |env| env["REMOTE_ADDR"] })
    refute envs[4].key?("REMOTE_ADDR")
    assert_equal ["GET"], envs.map { |env| env["REQUEST_METHOD"] }.uniq
    @front.ring.leave(0)
    own = ->(env) { env.except("highball.queue_time") } # goes on
    other = env_of({ "rack.version" => [1, 6] }, {})
    assert_equal own.call(envs.first), own.call(other), "the next thread, with its own template"
  end

  # It was read while looking for another request's, and kept until a request with a file used the same slot.
  def test_the_file_of_a_request_that_was_taken_back_is_closed
    @front = FakeFront.new
    stray, file = Array.new(2) { Tempfile.create.tap(&:close) }.map(&:path)
    @front.take_back(File.open(stray) { |io| @front.place({}, file: io) })
    File.open(file) { |io| @front.place({}, file: io) }
    input = @front.ring.claim(0, {}, files = [])["rack.input"]
    assert_equal [input], files
    open_files = ProcessFacts.open_files([Process.pid]).map(&:first)
    assert_includes open_files, file
    refute_includes open_files, stray
  ensure
    input&.close
    FileUtils.rm_f([stray, file].compact)
  end

  # The envs of threads that wait for a request are garbage, and others may have their addresses.
  def test_the_ticket_of_an_env_is_that_of_its_own_request
    *waiting, serving = (0...64).to_a
    @front = FakeFront.new(threads: 64)
    Thread.new { waiting.each { |seat| serve_one(seat, {}) } }.join # nothing of them is left on this stack
    GC.start
    envs = Array.new(2000) { serve_one(serving, {}).tap { |env| assert_current(env, serving) } }
    assert_equal 2000, envs.length # all at the same time
  end

  def test_early_hints_are_interim_answers
    @front = FakeFront.new
    placed = @front.place
    ring = @front.ring
    ticket = claim
    2.times { assert ring.early_hints(ticket, { "link" => %w[a b] }) }
    assert ring.answer(ticket, 200, {}, ["late"])
    answer = @front.take(placed)
    assert_equal [103, 103, 200], answer.heads.map(&:status)
    assert_equal [%w[link a], %w[link b]], answer.heads.first.fields
  end

  private

  def env_of(template, fields)
    serve_one(0, template, fields).except("rack.hijack") # each has another one
  end

  def assert_current(env, seat) = assert_equal(@front.ring.ticket(seat), @front.ring.ticket_of(env))

  # Returns the env.
  def serve_one(seat, template, fields = {})
    placed = @front.place(fields)
    env = @front.ring.claim(seat, template, [])
    @front.ring.reply(seat, 200, {}, [])
    @front.take(placed)
    env
  end

  # Returns the ticket of the request that is placed.
  def claim
    @front.ring.claim(0, {}, [])
    @front.ring.ticket(0)
  end
end
