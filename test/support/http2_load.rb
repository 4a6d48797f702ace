# frozen_string_literal: true

require_relative "http2_client"
require_relative "keep_alive_load"

# Clients of HTTP/2 that send requests side by side, a few on each connection at a time, and go on with a new connection
# where the server asks for that. Every request has to be answered, unless the server says that it has not begun it.
class Http2Load
  AT_A_TIME = 5

  # Runs the block while the clients send requests; returns the load with its results.
  def self.during(server, clients: 4, path: "/")
    load = new(clients, path) { Http2Client.tcp(server.port) }
    load.more
    yield load
    load.stop
    load
  ensure
    load&.kill
  end

  attr_reader :answers, :failures, :connections

  # The block connects.
  def initialize(clients, path, &connect)
    @connect = connect
    @path = path
    @answers = 0
    @connections = 0
    @failures = []
    @lock = Mutex.new
    @threads = Array.new(clients) { Thread.new { ask_on_new_connection until @stopping || @failures.any? } }
  end

  # Waits for some answers, or a failure.
  def more
    wanted = answers + (@threads.length * AT_A_TIME)
    Deadline.wait("answers", within: 30) { answers >= wanted || failures.any? }
  end

  def stop
    @stopping = true
    @threads.each(&:join)
  end

  def kill = @threads.each(&:kill)

  private

  def ask_on_new_connection
    count { @connections += 1 }
    @connect.call.greet.use do |client|
      stream = -1
      until client.goaway || @stopping
        streams = Array.new(AT_A_TIME) { stream += 2 }
        streams.each { |number| client.send_request(number, "GET", @path) }.each { |number| check(client, number) }
        sleep(rand(KeepAliveLoad::PAUSE))
      end
    end
  rescue SystemCallError, EOFError, ClientConnection::TimedOut => e
    count { @failures << "HTTP/2: #{e.class}: #{e.message}" }
  end

  def check(client, stream)
    client.read_until { client.part(stream).over? || unread?(client, stream) }
    return if unread?(client, stream)

    answer = client.answer(stream)
    count { answer.status == 200 && answer.is_complete ? @answers += 1 : @failures << "HTTP/2: #{answer.to_a}" }
  end

  # The server has announced that it does not serve this one.
  def unread?(client, stream) = client.goaway && stream > client.goaway.first

  def count(&) = @lock.synchronize(&)
end
