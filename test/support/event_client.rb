# frozen_string_literal: true

require "socket"
require_relative "deadline"

# A client of server-sent events, which knows the id of its last event as EventSource does.
class EventClient
  Event = Struct.new(:id, :type, :data)

  attr_reader :server, :path, :events, :comments, :head
  # How often it has connected.
  attr_reader :connections
  attr_accessor :last_id

  def initialize(server, path = "/events")
    @server = server
    @path = path
    @events = []
    @comments = 0
    @connections = 0
  end

  # Connects, and reads the head of the response. Returns itself.
  def open(headers = {})
    @socket = Socket.tcp("127.0.0.1", server.port, connect_timeout: 10)
    @bytes = "".b
    @text = +""
    @is_over = false
    headers = { "Host" => "localhost", "Last-Event-ID" => last_id, **headers }.compact
    @socket.write("GET #{path} HTTP/1.1\r\n#{headers.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n")
    read_more until (@head, rest = @bytes.split("\r\n\r\n", 2)) && rest
    @bytes = rest
    @connections += 1
    take_in
    self
  end

  def status = head[/ (\d+) /, 1].to_i
  def header(name) = head[/^#{name}: *(.*?)\r?$/i, 1]
  def data = events.map(&:data)
  def over? = @is_over
  def close = @socket.close

  # Reads until the condition holds, which may ask this client.
  def read_until(what = "events", within: 15)
    Deadline.wait(what, within: within) do
      return self if yield(self)

      raise EOFError, "the response has ended; events: #{events.last(5)}" if over?

      read_some(0.5)
      false
    end
  end

  def read_events(count) = read_until("#{count} events, of which #{events.length} are there") { events.length >= count }

  # Reads this number of events. Returns whether the response had as many.
  def stays_for(count)
    read_events(count)
    true
  rescue EOFError
    false
  end

  # Reads what comes within this time.
  def read_some(seconds)
    return unless @socket.wait_readable(seconds)

    read_more
    take_in
  end

  # Reads, and connects again whenever the response ends, until the block says that it is enough.
  def follow
    until yield
      begin
        open if @connections.zero? || over?
        read_some(0.05)
      rescue EOFError, SystemCallError
        @is_over = true
        sleep 0.05
      end
    end
    self
  end

  private

  def read_more
    @bytes << @socket.readpartial(65_536)
  rescue EOFError, Errno::ECONNRESET
    @is_over = true
    raise EOFError, "the server has closed the connection: #{@bytes}" unless @head
  end

  # Takes whole chunks, and of them whole events.
  def take_in
    while (size, rest = @bytes.split("\r\n", 2)) && rest
      length = size.to_i(16)
      @is_over = true if length.zero?
      break if over? || rest.bytesize < length + 2

      @text << rest.byteslice(0, length).force_encoding(Encoding::UTF_8)
      @bytes = rest.byteslice((length + 2)..)
    end
    *blocks, @text = "#{@text} ".split("\n\n", -1)
    @text.chop!
    blocks.each { |block| take_block(block) }
  end

  def take_block(block)
    fields = block.lines(chomp: true).reject(&:empty?).map { |line| line.split(/: ?/, 2) }
    @comments += fields.count { |name, _| name.empty? }
    value = ->(wanted) { fields.select { |name, _| name == wanted }.map(&:last) }
    @last_id = value["id"].last || @last_id
    return if value["data"].empty?

    @events << Event.new(@last_id, value["event"].last, value["data"].join("\n"))
  end
end
