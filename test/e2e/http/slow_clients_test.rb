# frozen_string_literal: true

# marks: alone, long (it measures latencies)

require_relative "../../support/e2e_test"

# Clients far slower than any worker, beside a fast one.
class SlowClientsTest < E2ETest
  def test_slow_clients_do_not_slow_a_fast_one
    server = serve("probe", workers: 2, threads: 3)
    rounds = Array.new(3) do
      alone = fast_client_p99(server)
      beside = beside_slow_clients(server, 200) { fast_client_p99(server) }
      [alone, beside]
    end
    # The best round counts: other load on the machine can only make a round worse.
    ratio = rounds.map { |alone, beside| beside / alone }.min
    assert_operator ratio, :<=, 2, "p99 alone and beside slow clients, in seconds: #{rounds}"
  end

  private

  def fast_client_p99(server)
    server.connect { |connection| percentile(timings(1_000) { connection.get("/") }, 0.99) }
  end

  # Runs the block while this many clients read a byte a second, each of an answer that is far larger than its
  # response buffer: the rest has to be spooled, or the workers would wait.
  def beside_slow_clients(server, count)
    slow = Array.new(count) do
      socket = Socket.new(:INET, :STREAM)
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_RCVBUF, 2048)
      socket.connect(Socket.sockaddr_in(server.port, "127.0.0.1"))
      socket.write("GET /download?bytes=2000000 HTTP/1.1\r\nHost: test\r\n\r\n")
      socket
    end
    reading = Thread.new do
      loop do
        slow.each { |socket| socket.read_nonblock(1, exception: false) }
        sleep 1
      end
    end
    yield
  ensure
    reading&.kill&.join
    slow&.each(&:close)
  end
end
