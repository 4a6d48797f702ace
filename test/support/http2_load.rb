# frozen_string_literal: true

require_relative "http2_client"

# Clients of HTTP/2 that send requests side by side, a few on each connection at a time, and go on with a new connection
# where the server asks for that. Every request has to be answered, but for those that the server says it has not begun.
class Http2Load
  AT_A_TIME = 5

  # Runs the block while the clients send requests; returns the load with its results.
  def self.during(server, clients: 4, path: "/")
    load = new(server, clients, path)
    wait = -> { Deadline.wait("answers", within: 30) { load.answers >= clients * AT_A_TIME || load.failures.any? } }
    wait.call
    yield
    load.stop
    load
  ensure
    load&.kill
  end

  attr_reader :answers, :failures, :connections

  def initialize(server, clients, path)
    @server = server
    @path = path
    @answers = 0
    @connections = 0
    @failures = []
    @lock = Mutex.new
    @threads = Array.new(clients) { Thread.new { ask_on_new_connection until @stopping || @failures.any? } }
  end

  def stop
    @stopping = true
    @threads.each(&:join)
  end

  def kill = @threads.each(&:kill)

  private

  def ask_on_new_connection
    count { @connections += 1 }
    Http2Client.tcp(@server.port).greet.use do |client|
      stream = -1
      until client.goaway || @stopping
        streams = Array.new(AT_A_TIME) { stream += 2 }
        streams.each { |number| client.send_request(number, "GET", @path) }.each { |number| check(client, number) }
      end
    end
  rescue SystemCallError, EOFError, ClientConnection::TimedOut => e
    count { @failures << "#{e.class}: #{e.message}" }
  end

  def check(client, stream)
    client.read_until { client.part(stream).over? || unread?(client, stream) }
    return if unread?(client, stream)

    answer = client.answer(stream)
    count { answer.status == 200 && answer.is_complete ? @answers += 1 : @failures << answer.to_a.inspect }
  end

  # The server has announced that it does not serve this one.
  def unread?(client, stream) = client.goaway && stream > client.goaway.first

  def count(&) = @lock.synchronize(&)
end
