# frozen_string_literal: true

require "socket"

# Sends requests at random times that do not depend on the answers (a Poisson process, the same for the same seed).
# The time of a request counts from when it should have been sent. Each has a connection for itself; kept ones are
# used again.
#
# As a program, it does so until TERM, and then writes a line for each request to standard output: when it should have
# been sent (seconds since 1970), how long it took (seconds), its method, the machine or `-`, and the status or the
# error.
class OpenLoop
  TIME_OUT = 15 # seconds
  HEAD_END = "\r\n\r\n"
  HOST = "Host: cluster.test\r\n"
  GET = "GET / HTTP/1.1\r\n#{HOST}\r\n".freeze
  # May not be repeated.
  POST = "POST / HTTP/1.1\r\n#{HOST}Content-Length: 6\r\n\r\nhello\n".freeze
  POSTS = 0.25 # their share

  # A request under way.
  class Exchange
    attr_reader :due, :method, :socket

    def initialize(socket, due, request)
      @socket = socket
      @due = due
      @method = request[/\S+/]
      @answer = +"".b
      @socket.write_nonblock(request)
    end

    # Reads what has come; true at the end of the answer.
    def read
      while (bytes = @socket.read_nonblock(4096, exception: false)) != :wait_readable
        raise EOFError if bytes.nil?

        @answer << bytes
      end
      complete?
    end

    def status = @answer[%r{\AHTTP/1.1 (\d+)}, 1]
    def machine = @answer[/^x-machine: (\S+)/i, 1] || "-"
    def keeps? = !@answer.match?(/^connection: close/i)

    private

    def complete?
      head, body = @answer.split(HEAD_END, 2)
      body && body.bytesize >= head[/^content-length: (\d+)/i, 1].to_i
    end
  end

  def initialize(host, port, rate, seed)
    @address = [host, port]
    @rate = rate
    @random = Random.new(seed)
    @idle = []
    @under_way = {}
    @stopping = false
  end

  # Sends requests until `stop`, and waits for their answers. Yields each that has ended.
  def run(&report)
    @report = report
    @zero = Process.clock_gettime(Process::CLOCK_REALTIME) - now
    due = now
    until @stopping
      wait(due)
      next if due > now

      send_request(due)
      due += pause
    end
    wait(now + 0.1) while @under_way.any?
  end

  def stop
    @stopping = true
  end

  private

  # On the monotonic clock.
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def pause = -Math.log(1 - @random.rand) / @rate

  def send_request(due)
    socket = @idle.pop || connect
    request = @random.rand < POSTS ? POST : GET
    @under_way[socket] = Exchange.new(socket, due, request)
  rescue SystemCallError => e
    socket&.close
    finish(due, "-", "-", e.class.name)
  end

  def connect
    Socket.tcp(*@address, connect_timeout: TIME_OUT).tap { |one| one.setsockopt(:TCP, :NODELAY, true) }
  end

  # Reads until then.
  def wait(until_time)
    readable, = IO.select(@under_way.keys + @idle, nil, nil, [until_time - now, 0].max)
    readable&.each { |socket| @under_way.key?(socket) ? read(@under_way[socket]) : drop_idle(socket) }
    late, = @under_way.values.partition { |exchange| now - exchange.due > TIME_OUT }
    late.each { |exchange| fail_with(exchange, "timeout") }
  end

  # The balancer has closed it.
  def drop_idle(socket) = @idle.delete(socket).close

  def read(exchange)
    return unless exchange.read

    finish(exchange.due, exchange.method, exchange.machine, exchange.status)
    @under_way.delete(exchange.socket)
    exchange.keeps? ? @idle << exchange.socket : exchange.socket.close
  rescue EOFError, SystemCallError => e
    fail_with(exchange, e.is_a?(EOFError) ? "closed" : e.class.name)
  end

  def fail_with(exchange, error)
    finish(exchange.due, exchange.method, exchange.machine, error)
    @under_way.delete(exchange.socket)
    exchange.socket.close
  end

  def finish(due, method, machine, result)
    @report.call(due + @zero, now - due, method, machine, result)
  end
end

if $PROGRAM_NAME == __FILE__
  host, port, rate, seed = ARGV
  load = OpenLoop.new(host, Integer(port), Float(rate), Integer(seed))
  trap("TERM") { load.stop }
  lines = []
  load.run { |*fields| lines << fields.join(" ") }
  puts lines
end
