# frozen_string_literal: true

require "socket"

# A service for which applications wait: it answers when it is released, and at once from then on.
class SlowService
  def initialize
    @listener = TCPServer.new("127.0.0.1", 0)
    @waiting = []
    @mutex = Mutex.new
    @thread = Thread.new { accept }
    @thread.report_on_exception = false
  end

  def port = @listener.addr[1]

  # Connections that wait for an answer.
  def waiting = @mutex.synchronize { @waiting.length }

  # Answers all waiting requests, and later ones.
  def release
    @mutex.synchronize do
      @released = true
      @waiting.each { |socket| answer(socket) }.clear
    end
  end

  # Lets later requests wait again.
  def hold = @mutex.synchronize { @released = false }

  def close
    @thread.kill
    release
    @listener.close
  end

  private

  def accept
    loop do
      socket = @listener.accept
      @mutex.synchronize { @released ? answer(socket) : @waiting << socket }
    end
  end

  def answer(socket)
    socket.write("answer")
    socket.close
  rescue SystemCallError
    nil # its process has been killed
  end
end
