# frozen_string_literal: true

require_relative "../../support/e2e_test"

# What the server keeps of its memory when those who needed it have left.
class KeptMemoryTest < E2ETest
  SLOW = 400
  STAY = 10

  # It was kept, as malloc gives back only what lies behind all that is in use: here, the memory of those who stay.
  def test_the_memory_of_slow_clients_is_given_back
    path = File.join(folder_with, "socket")
    server = serve("probe", bind: path)
    before = front_bytes(server)
    slow = slow_clients(path)
    wait_for("all buffers are full", within: 30) { front_bytes(server) > before + (60 * MIB) }
    slow.shift(SLOW - STAY).each(&:close)
    wait_for("the memory is given back", within: 30) { front_bytes(server) < before + (20 * MIB) }
  ensure
    slow&.each(&:close)
  end

  private

  def front_bytes(server) = ProcessFacts.private_dirty_bytes([server.server_pid])

  # They read nothing of answers that are larger than what the kernel and the server buffer.
  def slow_clients(path)
    Array.new(SLOW) do
      UNIXSocket.new(path).tap do |socket|
        socket.write("GET /download?bytes=#{MIB} HTTP/1.1\r\nHost: test\r\n\r\n")
      end
    end
  end
end
