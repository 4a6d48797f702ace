# frozen_string_literal: true

require "json"
require "openssl"
require "socket"
require "time"

# Stands before an authority, and behaves as a test says: it suggests times to renew certificates (RFC 9773), refuses
# requests, or answers none.
class AcmeDouble
  # The number of requests so far.
  attr_reader :requests

  def initialize(authority)
    @authority = authority
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @requests = 0
    @held = []
    pass_on
    @thread = Thread.new { loop { accept(@listener.accept) } }
  end

  def directory = "https://localhost:#{@port}/dir"

  # From now on the directory is the authority's.
  def pass_on = @answer = ->(path) { path == "/dir" ? resources : [404, {}, "{}"] }

  # The same, and certificates should be renewed between these times.
  def suggest(from, to)
    window = { suggestedWindow: { start: from.utc.iso8601, end: to.utc.iso8601 } }
    suggestion = [200, { "Retry-After" => "21600" }, JSON.generate(window)]
    @answer = ->(path) { path == "/dir" ? resources : suggestion }
  end

  def refuse(status, headers = {}, body = "<h1>Refused</h1>") = @answer = ->(_path) { [status, headers, body] }

  # From now on connections are accepted, and that is all.
  def be_silent = @answer = nil

  def stop
    @thread.kill
    @thread.join
    [@listener, *@held].each(&:close)
  end

  private

  def resources
    renewal = "https://localhost:#{@port}/renewal"
    [200, { "Content-Type" => "application/json" }, JSON.generate(@authority.resources.merge("renewalInfo" => renewal))]
  end

  def accept(socket)
    @requests += 1
    return @held << socket unless @answer

    tls = OpenSSL::SSL::SSLSocket.new(socket, context)
    tls.sync_close = true
    tls.accept
    answer(tls)
  rescue OpenSSL::SSL::SSLError, SystemCallError
    socket.close
  end

  def answer(tls)
    path = tls.gets.to_s.split[1]
    nil while tls.gets.to_s.strip != ""
    status, headers, body = @answer.call(path)
    head = { "Content-Length" => body.bytesize, "Connection" => "close", **headers }
    tls.write("HTTP/1.1 #{status} Status\r\n", *head.map { |name, value| "#{name}: #{value}\r\n" }, "\r\n", body)
    tls.close
  end

  def context
    @context ||= OpenSSL::SSL::SSLContext.new.tap do |context|
      context.cert = @authority.own.certificate
      context.key = @authority.own.key
    end
  end
end
