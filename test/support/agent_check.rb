# frozen_string_literal: true

require "socket"

# For a test that asks a server how busy it is, as HAProxy's agent check does.
module AgentCheck
  WITHIN = 5 # seconds

  private

  def agent = ["--agent-check", "127.0.0.1:#{agent_port}"]

  def agent_port = @agent_port ||= free_port

  # The line without its end.
  def ask_agent(name = nil, port: agent_port)
    Socket.tcp("127.0.0.1", port, connect_timeout: WITHIN) do |socket|
      socket.write("#{name}\n") if name
      read_line_of(socket)
    end
  end

  def read_line_of(socket)
    line = +""
    loop do
      raise "no answer within #{WITHIN} s" unless socket.wait_readable(WITHIN)

      line << socket.readpartial(4096)
    rescue EOFError
      return line.chomp
    end
  end

  # The weight in percent; nil where the server should get no requests.
  def weight(name = nil, **options) = ask_agent(name, **options)[/\Aup ready (\d+)%\z/, 1]&.to_i
end
