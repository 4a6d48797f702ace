# frozen_string_literal: true

require "minitest/autorun"
require "socket"
require "highball/control_socket"

class ControlSocketTest < Minitest::Test
  def setup
    @ours, @theirs = Socket.pair(:UNIX, :SEQPACKET).map { |socket| Highball::ControlSocket.new(socket) }
  end

  def teardown
    [@ours, @theirs].each { |socket| socket.close unless socket.to_io.closed? }
  end

  def test_a_message_is_one_packet
    @ours.say(:step, step: :load_app)
    @ours.say(:ready)
    assert_equal [{ type: "step", step: "load_app" }, []], @theirs.receive
    assert_equal [{ type: "ready" }, []], @theirs.receive
  end

  def test_descriptors_travel_with_it
    IO.pipe do |reader, writer|
      @ours.say(:hello, pid: 1, descriptors: [writer])
      message, (copy,) = @theirs.receive
      assert_equal 1, message[:pid]
      copy.write("through")
      copy.close
      assert_equal "through", reader.readpartial(20)
    end
  end

  def test_the_end_of_the_other_side_is_nil
    @theirs.close
    assert_nil @ours.receive
  end

  def test_it_is_taken_from_the_environment_once_and_not_inherited
    raw, other = Socket.pair(:UNIX, :SEQPACKET)
    raw.autoclose = false
    environment = { "HIGHBALL_CONTROL_FD" => raw.fileno.to_s }
    socket = Highball::ControlSocket.from_environment(environment)
    assert_empty environment
    assert_predicate socket.to_io, :close_on_exec?
    socket.say(:ready)
    assert_equal '{"type":"ready"}', other.recv(100)
  ensure
    [socket, other].each { |one| one&.close }
  end

  def test_without_the_environment_it_explains_how_it_is_started
    error = assert_raises(ArgumentError) { Highball::ControlSocket.from_environment({}) }
    assert_match(/highball starts this program/, error.message)
  end
end
