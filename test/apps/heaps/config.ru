# frozen_string_literal: true

require "json"
require "socket"

# Fills its heap in known ways, and answers with Ruby's own figures.
class Heaps
  def initialize
    @kept = []
  end

  def call(env)
    act(env["PATH_INFO"])
    facts = { pid: Process.pid, gc: GC.stat, page_bytes: GC::INTERNAL_CONSTANTS[:HEAP_PAGE_SIZE], child: @child }
    [200, { "content-type" => "application/json" }, [JSON.generate(facts)]]
  end

  private

  def act(path)
    case path
    when "/keep" then keep
    when "/shred" then @kept.select!.with_index { |_, index| (index % 20).zero? }
    when "/fill" then @kept << ("x" * 40 * 1024 * 1024)
    when "/child" then @child = Process.spawn("sleep", "60", in: File::NULL)
    when "/tell" then tell_heap
    end
  end

  # Then completes the collection: an unfinished sweep would free slots between two measurements.
  def keep
    @kept.concat(Array.new(300_000) { |number| "kept #{number}" })
    GC.start
  end

  # On the sockets that keep message boundaries: the one that carries descriptors, and the control socket.
  def tell_heap
    Dir.children("/proc/self/fd").map(&:to_i).each do |number|
      next unless File.readlink("/proc/self/fd/#{number}").start_with?("socket:")

      socket = Socket.for_fd(number)
      socket.autoclose = false
      next unless socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_SEQPACKET

      socket.sendmsg_nonblock('{"type":"heap","heap":null}', 0, nil, exception: false)
    rescue SystemCallError, IOError
      next
    end
  end
end

run Heaps.new
