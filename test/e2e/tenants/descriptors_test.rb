# frozen_string_literal: true

# marks: long

require "socket"
require_relative "../../support/tenants_test_case"

# Descriptors that a tenant's application sends over its descriptor socket: the server sends nothing to sockets that a
# tenant chose, and reads only files that the tenant may read.
class TenantDescriptorsTest < TenantsTestCase
  # Sends descriptors past Highball's Ruby code, as an application can.
  ATTACK = <<~'RUBY'
    require "socket"

    # Learns the number of the descriptor socket as the ring is made.
    module Eavesdropper
      def new(*numbers) = super.tap { $descriptors = Socket.for_fd(numbers.last).tap { |io| io.autoclose = false } }
    end
    Highball::Ring.singleton_class.prepend(Eavesdropper)

    # Sends descriptors for this request, with the tag that the front expects.
    def hand_over(ticket, *ios)
      tag = [ticket >> 16, ticket & 0xffff].pack("Q<S<")
      $descriptors.sendmsg(tag, 0, nil, Socket::AncillaryData.unix_rights(*ios))
    end

    def ring_and_ticket(env) = Highball::Hijack.ring.then { |ring| [ring, ring.ticket_of(env)] }

    # Hands the client's connection over to a socket of another process.
    def hijack_to(env, socket)
      hand_over(ring_and_ticket(env).last, socket)
      io = env["rack.hijack"].call
      io.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
      Thread.new { IO.copy_stream(io, io) }
      [200, {}, []]
    end

    # Sends this file as the body of the answer.
    def answer_with(env, io)
      ring, ticket = ring_and_ticket(env)
      ring.head(ticket, 200, { "content-type" => "text/plain" }, false)
      ring.file(ticket, io.fileno, 0, 100)
      sleep # until this process is killed
    end

    # A descriptor that cannot be read: O_PATH.
    PATH_ONLY = 0o10000000
    # Closing it blocks the last process that has it open, unless that process has removed the linger time.
    def lingering
      server = TCPServer.new("127.0.0.1", 0)
      socket = TCPSocket.new("127.0.0.1", server.addr[1])
      ($kept ||= []) << server.accept
      socket.setsockopt(Socket::Option.linger(true, 600))
      nil while socket.write_nonblock("x" * 65_536, exception: false).is_a?(Integer)
      socket
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/hijack" then hijack_to(env, UNIXSocket.new(env.fetch("HTTP_X_SOCKET")))
      when "/stream"
        socket = lingering
        io = env["rack.hijack"].call
        io.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        io.send_io(socket)
        socket.close
        io.write("after it\n")
        [200, {}, []]
      when "/several"
        socket = lingering
        hand_over(ring_and_ticket(env).last, socket, $stdin)
        socket.close
        answer_with(env, File.open("config.ru"))
      when "/file" then answer_with(env, File.open(env.fetch("HTTP_X_PATH"), File::RDONLY | File::NONBLOCK))
      when "/path" then answer_with(env, IO.for_fd(IO.sysopen("config.ru", PATH_ONLY), autoclose: false))
      when "/pipe" then answer_with(env, ($pipe = IO.pipe).first)
      when "/socket" then answer_with(env, UNIXSocket.pair.first)
      else [200, {}, ["here"]]
      end
    }
  RUBY
  # The attack goes on until its worker is killed.
  ENDS_SOON = "drain_timeout = '1s'"
  UPGRADE = { "Host" => HOSTS.fetch(ATTACKER), "Connection" => "Upgrade", "Upgrade" => "echo" }.freeze

  def test_nothing_is_sent_to_a_socket_that_a_tenant_chose
    path = File.join(@place, "daemon.sock")
    daemon = UNIXServer.new(path)
    daemon.setsockopt(:SOCKET, :PASSCRED, true)
    File.chmod(0o777, path)
    @server = serve_tenants(attacker_app("config.ru" => ATTACK))
    @server.connect do |visitor|
      visitor.send_request("GET", "/hijack", UPGRADE.merge("X-Socket" => path))
      assert_equal 101, visitor.read_response.status
      visitor.write("run this as root\n")
      assert_equal "run this as root\n", visitor.read_bytes(17)
      wait_for("the attacker's connection") { daemon.wait_readable(0) }
      connection = daemon.accept
      assert_includes [nil, :wait_readable], connection.recvmsg_nonblock(exception: false), "the daemon got bytes"
    end
    assert_victim_serves(@server)
  end

  def test_only_files_that_can_be_read_are_answers
    @server = serve_tenants(attacker_app("config.ru" => ATTACK))
    [["/several", {}], ["/path", {}], ["/pipe", {}], ["/socket", {}],
     ["/file", { "X-Path" => "/dev/zero" }]].each do |path, fields|
      assert_costs_the_worker_its_life(path, fields)
    end
  end

  # What is in a file of the kernel may depend on the process that reads it. The front finds that out when it reads the
  # file, as a file system may not answer.
  def test_files_that_the_kernel_makes_up_are_not_sent
    @server = serve_tenants(attacker_app("config.ru" => ATTACK), top: ENDS_SOON)
    @server.connect do |visitor|
      fields = { "Host" => HOSTS.fetch(ATTACKER), "X-Path" => "/proc/#{@server.pid}/stat" }
      visitor.send_request("GET", "/file", fields)
      assert_raises(EOFError, SystemCallError) { refute_includes visitor.read_response.body, "highball" }
    end
    wait_for("the reason") { @server.log.include?("an answer is cut off: cannot read its file") }
    assert_victim_serves(@server)
  end

  def test_descriptors_on_a_hijacked_connection_hold_nothing_up
    @server = serve_tenants(attacker_app("config.ru" => ATTACK))
    @server.connect do |visitor|
      visitor.send_request("GET", "/stream", UPGRADE)
      assert_equal 101, visitor.read_response.status
      bytes = visitor.read_bytes(10)
      assert_includes bytes, "after it"
      assert_victim_serves(@server)
    end
  end

  private

  # The visitor gets nothing of the file, and the worker is replaced. (POST, because another repeats a GET.)
  def assert_costs_the_worker_its_life(path, fields)
    before = @server.log.length
    begin
      answer = @server.request("POST", path, fields.merge("Host" => HOSTS.fetch(ATTACKER)), "", within: 30)
      assert_equal [502, nil], [answer.status, answer.body[/\d+ \(/]], path
    rescue EOFError, SystemCallError
      nil # cut off
    end
    wait_for("the end of the worker that answered #{path} #{fields}") do
      @server.log[before..].match?(/wrote invalid data into its ring.*(descriptor|a file that)/m)
    end
    assert_victim_serves(@server)
  end
end
