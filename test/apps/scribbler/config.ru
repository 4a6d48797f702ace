# frozen_string_literal: true

require "socket"

# Echoes a token. On request it misbehaves: it writes over every byte that it shares with the server.
class Scribbler
  def call(env)
    misbehave(env["PATH_INFO"])
    body = "#{Process.pid} #{env['HTTP_X_TOKEN']}\n"
    [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
  end

  private

  # Returns at once; a thread goes on until the process is killed.
  def misbehave(path)
    random = Random.new(Process.pid)
    case path
    when "/scribble" then Thread.new { loop { scribble(random) } }
    when "/babble" then Thread.new { loop { babble(random) } }
    end
  end

  def scribble(random)
    File.open("/proc/self/mem", "r+b") do |memory|
      ring_ranges.each do |first, last|
        200.times do
          # Half of the time at the beginning, where the ring's own words are.
          span = random.rand(2).zero? ? [16_384, last - first].min : last - first
          memory.seek(first + (random.rand(span) & ~7))
          memory.write(random.bytes(8 * random.rand(1..64)))
          memory.flush
        end
      end
    end
  end

  def ring_ranges
    File.foreach("/proc/self/maps").grep(/memfd:highball-ring/).map do |line|
      line[/\A\S+/].split("-").map { |address| address.to_i(16) }
    end
  end

  # Sends garbage and unexpected descriptors on every socket that keeps message boundaries: the one that carries
  # descriptors, and the control socket.
  def babble(random)
    Dir.children("/proc/self/fd").map(&:to_i).each do |number|
      next unless File.readlink("/proc/self/fd/#{number}").start_with?("socket:")

      socket = Socket.for_fd(number)
      socket.autoclose = false
      next unless socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_SEQPACKET

      rights = random.rand(2).zero? ? [Socket::AncillaryData.unix_rights($stdin)] : []
      socket.sendmsg_nonblock(random.bytes(random.rand(1..40)), 0, nil, *rights, exception: false)
    rescue SystemCallError, IOError
      next
    end
  end
end

run Scribbler.new
