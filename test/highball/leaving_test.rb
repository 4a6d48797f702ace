# frozen_string_literal: true

require_relative "../support/server_test_case"

# Answers that leave their places: what a worker does then, with a front that is played by the test.
class LeavingTest < ServerTestCase
  # A body that yields what the test gives it, until nil.
  class Fed
    attr_reader :pieces, :closed

    def initialize
      @pieces = Queue.new
      @closed = Queue.new
    end

    def each
      while (piece = @pieces.pop)
        yield piece
      end
    end

    def close = @closed << true
  end

  def teardown
    @body&.pieces&.push(nil)
    super
  end

  def test_an_answer_goes_on_over_its_socket_and_another_thread_serves
    body = serve_fed
    placed, socket = leave(body)
    assert_equal %i[head body stream], @front.take(placed).kinds
    assert_serves
    body.pieces << "two" << nil
    assert_equal [[:body, "two"], [:end, ""], nil], Array.new(3) { @front.frame_from(socket) }
    wait_for("its thread to end") { threads.compact.size == 1 }
    assert_serves
  end

  # The file of a body may come before the thread that claims it: another thread that receives it keeps it.
  def test_a_request_that_waits_gets_the_file_of_its_body
    body = serve_fed { |env| [200, {}, [env["rack.input"].read]] }
    placed = begin_answer(body)
    waiting = Tempfile.create do |file|
      file.write("spooled")
      file.rewind
      place({}, file: file)
    end
    leave(body, placed)
    assert_equal "spooled", answer_to(waiting).body
  end

  def test_offers_that_come_too_late_take_no_room
    serve { OK }
    before = Dir.children("/proc/self/fd").size
    1000.times do
      placed = place
      socket = @front.offer(placed)
      assert answer_to(placed).ended?
      @server.leave_place(@front.ticket(placed))
      socket.close
    end
    assert_operator Dir.children("/proc/self/fd").size, :<=, before + 20
  end

  def test_a_killed_thread_cuts_its_answer_off
    body = serve_fed
    _, socket = leave(body)
    streaming = threads.first
    assert_serves
    streaming.kill
    assert_nil @front.frame_from(socket)
    assert_serves
    wait_for("one thread") { threads.compact.size == 1 }
    refute_empty body.closed
  end

  def test_a_writer_learns_that_its_client_has_left
    body = serve_fed
    _, socket = leave(body)
    socket.close
    body.pieces << "two"
    wait_for("the body to be closed") { !body.closed.empty? }
  end

  # The next stream's thread takes the place when it is done.
  def test_a_thread_that_cannot_be_started_is_made_up_for
    body = serve_fed
    @server.define_singleton_method(:start_thread) { |_| raise ThreadError, "no room" }
    _, socket = leave(body)
    wait_for("the log") { log.include?("cannot start a thread to replace") }
    body.pieces << nil
    assert_equal :end, @front.frame_from(socket).first
    assert_serves
  end

  # Action Cable's thread returns when its client has been answered. Its socket was closed then.
  def test_the_application_keeps_a_connection_that_has_left
    taken = Queue.new
    goes_on = Queue.new
    serve do |env|
      next OK unless env["PATH_INFO"] == "/taken"

      taken << env["rack.hijack"].call
      goes_on.pop
      [-1, {}, []]
    end
    placed = place({ "PATH_INFO" => "/taken" })
    wait_for("the connection to be taken") { @front.take(placed) && !taken.empty? }
    @server.leave_place(@front.ticket(placed))
    goes_on << true
    wait_for("its thread to end") { threads.compact.size == 1 }
    refute_predicate taken.pop, :closed?
    assert_empty log
    assert_serves
  end

  private

  # Serves `/fed` with a body that the test feeds, and other requests with the block.
  def serve_fed(&others)
    others ||= ->(_) { OK }
    (@body = Fed.new).tap { |body| serve { |env| env["PATH_INFO"] == "/fed" ? [200, {}, body] : others.call(env) } }
  end

  def begin_answer(body)
    body.pieces << "one"
    placed = place({ "PATH_INFO" => "/fed" })
    wait_for("the first piece") { @front.written(placed).positive? }
    placed
  end

  def leave(body, placed = begin_answer(body))
    socket = @front.offer(placed)
    @server.leave_place(@front.ticket(placed))
    [placed, socket]
  end
end
