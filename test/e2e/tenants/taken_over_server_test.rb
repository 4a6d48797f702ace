# frozen_string_literal: true

require "io/nonblock"
require_relative "../../support/spawner_test_case"

# What an attacker could do after taking over the server: it has the socket for orders to the spawner.
class TakenOverServerTest < SpawnerTestCase
  REPLIES_WITHIN = 30 # seconds

  def test_forged_orders_are_refused
    server = serve_without_looks_at_memory("access_log = '#{@place}/access.log'\n")
    orders = orders_of(server)
    attacker = File.join(@place, "attacker")
    bystander = Process.spawn("sleep", "1000")
    forged_orders(attacker).each do |what, (kind, rest)|
      assert_includes [REFUSED, nil], ask_spawner(orders, [kind, rest].pack("Ca*"), IO.pipe.first), what
    end
    [bystander, 1, Process.pid, server.pid].each do |pid|
      assert_equal REFUSED, ask_spawner(orders, [7, Signal.list["TERM"]].pack("CC"), pidfd_of(pid)),
                   "a signal to #{pid}"
    end
    assert_equal REFUSED, ask_spawner(orders, [7, Signal.list["TERM"]].pack("CC"), File.open(@root_file)), "no pidfd"
    assert_nil Process.waitpid(bystander, Process::WNOHANG)
    assert_root_file_untouched
    assert_victim_serves(server)
  ensure
    HighballServer.kill(bystander) if bystander
    Process.wait(bystander) if bystander
  end

  def test_orders_within_the_table_are_carried_out
    orders = orders_of(serve_without_looks_at_memory)
    as_attacker = [6, 0, Etc.getpwnam(ATTACKER).uid, File.join(@place, "attacker")].pack("CCVa*")
    assert_equal STARTED, ask_spawner(orders, as_attacker, UNIXSocket.pair.first)
  end

  def test_garbage_on_the_socket_of_the_spawner_changes_nothing
    server = serve_without_looks_at_memory
    orders = orders_of(server)
    garbage = ["x", "\0" * 5, "\xff" * 4127, "\0" * 60_000] + Array.new(200) { Random.bytes(rand(1..64)) }
    garbage.each { |bytes| orders.sendmsg(bytes) }
    many = Array.new(200) { File.open(File::NULL) }
    orders.sendmsg([0, 3].pack("VC"), 0, nil, Socket::AncillaryData.unix_rights(*many))
    assert_victim_serves(server)
    before = Dir.children("/proc/#{server.pid}/fd").length
    assert_operator before, :<, 30, "unexpected descriptors are closed"
    server.signal("USR1")
    wait_for("a restart", within: 30) { server.log.include?("restarted: the new version serves") }
    assert_victim_serves(server)
  end

  def test_orders_that_are_repeated_take_no_more_each_time
    server = serve_without_looks_at_memory
    orders = orders_of(server)
    # Otherwise it may read the replies to the test's orders.
    stop_processes([front = front_of(server)])
    open = -> { Dir.children("/proc/#{server.pid}/fd").length }
    path = "unix:#{File.join(@place, 'server.sock')}"
    listen = -> { ask_spawner(orders, [1, path].pack("Ca*"), IO.pipe.first) }
    5.times { listen.call }
    before = open.call
    20.times { listen.call }
    assert_operator open.call, :<=, before + 2
    pairs = Array.new(100) { UNIXSocket.pair }
    readers = pairs.map do |passed, _kept|
      passed.nonblock = false # the process waits for what the other end sends
      ask_spawner(orders, [3].pack("C"), passed)
    end
    assert_includes readers, REFUSED, "there are never many that read the configuration"
    HighballServer.kill(front, "CONT")
    assert_victim_serves(server)
  end

  # Its event socket is full, and a process of another user holds it.
  def test_all_ends_with_a_server_that_does_not_read_its_events
    server = serve_without_looks_at_memory
    orders = orders_of(server)
    front = front_of(server)
    stop_processes([front])
    started = [6, 1, Etc.getpwnam(ATTACKER).uid, File.join(@place, "attacker")].pack("CCVa*")
    300.times { ask_spawner(orders, started, UNIXSocket.pair.first.tap(&:close_write)) }
    held = sockets_of(front)
    HighballServer.kill(front)
    assert_equal 128 + Signal.list["KILL"], server.wait(within: 20).exitstatus
    assert_empty server.orphans(within: 10)
  ensure
    held&.each(&:close)
  end

  private

  # For a look at the memory of its workers the server may need an opener more. The reply to that order, and those to
  # the test's, go to whichever reads the socket first.
  def serve_without_looks_at_memory(more = "")
    serve_tenants(top: "#{more}memory_budget = 'none'")
  end

  def forged_orders(attacker)
    {
      "another address" => [1, "127.0.0.1:1"], "a log that is a file of root's" => [2, @root_file],
      "a log by a detour" => [2, "#{@place}/../..#{@root_file}"],
      "a log that is not a path" => [2, "access.log"],
      "an application that is not there" => [6, [0, 0, "/usr"].pack("CVa*")],
      "the attacker's application as root" => [6, [0, 0, attacker].pack("CVa*")],
      "the attacker's application as the victim" => [6, [0, Etc.getpwnam(VICTIM).uid, attacker].pack("CVa*")],
      "another role" => [6, [3, Etc.getpwnam(ATTACKER).uid, attacker].pack("CVa*")],
      "a signal that is none of the server's" => [7, [Signal.list["STOP"]].pack("C")],
      "a successor that there is not" => [9, [1, 1].pack("CV")], "no such order" => [13, ""],
      "the path of another address" => [11, "unix:#{@root_file}"], "nothing" => [0, ""]
    }
  end

  # Fetches the server's first socket, the one for its orders, as a debugger would.
  def orders_of(server)
    sockets_of(front_of(server)).find do |socket|
      socket.getsockopt(:SOCKET,
                        :TYPE).int == Socket::SOCK_SEQPACKET && socket.getsockopt(:SOCKET,
                                                                                  :RCVTIMEO).data.unpack1("q") == 10
    end
  end

  def sockets_of(front)
    sockets = Dir.children("/proc/#{front}/fd").map(&:to_i).sort.select do |fd|
      File.readlink("/proc/#{front}/fd/#{fd}").start_with?("socket:")
    end
    pidfd = pidfd_of(front)
    sockets.map { |fd| Socket.for_fd(syscall(438, pidfd.fileno, fd, 0)) } # pidfd_getfd(2)
  end

  # pidfd_open(2)
  def pidfd_of(pid) = IO.for_fd(syscall(434, pid, 0))

  REFUSED = 4
  STARTED = 2
  ANY_CHILDREN = 10

  # The kind of the spawner's reply; nil if there is none, so that the first reply is to the next order.
  def ask_spawner(orders, order, descriptor)
    number = rand(1 << 30) | (1 << 31)
    rights = Socket::AncillaryData.unix_rights(descriptor)
    orders.sendmsg([number].pack("V") + order, 0, nil, rights)
    orders.sendmsg([number + 1, ANY_CHILDREN].pack("VC"))
    replies = {}
    until replies.key?(number + 1)
      raise "no reply from the spawner" unless orders.wait_readable(REPLIES_WITHIN)

      reply, = orders.recvmsg(scm_rights: true)
      replies.store(*reply.unpack("VC"))
    end
    replies[number]
  end
end
