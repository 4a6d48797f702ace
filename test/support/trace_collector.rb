# frozen_string_literal: true

require "json"
require "open3"
require "openssl"
require "socket"
require "stringio"
require "zlib"
require_relative "deadline"

# A collector of traces: it keeps what it gets, and reads it by the official schema.
class TraceCollector
  # A span, with its ids as hexadecimal digits and its times in nanoseconds.
  Span = Struct.new(:trace, :id, :parent, :name, :kind, :begin, :end, :attributes, :state, :error?, :resource) do
    def [](attribute) = attribute.is_a?(String) ? attributes[attribute] : super
    def within?(other) = self.begin >= other.begin && self.end <= other.end
  end

  Request = Struct.new(:line, :headers, :body)

  OK = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

  # An answer with this status and these header lines.
  def self.status(status, *lines)
    ["HTTP/1.1 #{status} X", *lines, "content-length: 0", "", ""].join("\r\n")
  end

  def self.python = File.join(ENV.fetch("HIGHBALL_TEST_CACHE", "/var/cache/highball"), "validators/bin/python")

  # Whether the official schema is there.
  def self.available?
    @available ||= File.executable?(python) && system(python, "-c", "import opentelemetry.proto.trace", err: File::NULL)
  end

  # `connections` is the number of connections by now.
  attr_reader :port, :requests, :connections

  # What it answers: bytes, a proc that is given the socket, or nil: nothing.
  attr_accessor :answer

  # `tls`: wraps each socket.
  def initialize(answer: OK, port: 0, tls: nil)
    @answer = answer
    @requests = []
    @connections = 0
    @spans = []
    @read = 0
    @lock = Mutex.new
    @sockets = []
    @tls = tls
    @server = TCPServer.new("127.0.0.1", port)
    @port = @server.addr[1]
    @thread = Thread.new { accept_all }
  end

  def endpoint = "http://127.0.0.1:#{@port}"

  def close
    @server.close
    @thread.join
    @lock.synchronize { @sockets.each(&:close) }
  end

  # All spans by now.
  def spans
    bodies = @lock.synchronize { @requests.drop(@read).tap { |fresh| @read += fresh.length } }.map(&:body)
    @spans += bodies.empty? ? [] : decode(bodies)
  end

  # Waits for spans that fit. Returns them.
  def wait_for(what, within: 20, &fits)
    found = nil
    Deadline.wait(what, within: within) { (found = spans.select(&fits)).any? }
    found
  end

  # Waits for the span of the request for this path, and the spans below it: by name.
  def trace_of(path, within: 20)
    fits = ->(span) { span.kind == "SERVER" && span["url.path"] == path }
    root = wait_for("the span of #{path}", within: within, &fits).last
    below = spans.select { |span| span.parent == root.id }
    { "request" => root }.merge(below.to_h { |span| [span.name, span] })
  end

  private

  def accept_all
    loop do
      socket = @server.accept
      @connections += 1
      Thread.new { serve(socket) }
    end
  rescue IOError, SystemCallError
    nil # it is closed
  end

  def serve(socket)
    socket = @tls.call(socket) if @tls
    @lock.synchronize { @sockets << socket }
    while (request = read(socket))
      @lock.synchronize { @requests << request }
      answer = @answer.respond_to?(:call) ? @answer.call(socket) : @answer
      answer ? socket.write(answer) : sleep
    end
  rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  ensure
    socket.close unless socket.closed?
  end

  def read(socket)
    line = socket.gets("\r\n") or return
    headers = {}
    while (field = socket.gets("\r\n")&.chomp("\r\n")) && !field.empty?
      name, value = field.split(/:\s*/, 2)
      headers[name.downcase] = value
    end
    body = socket.read(headers.fetch("content-length", 0).to_i)
    body = Zlib::GzipReader.new(StringIO.new(body)).read if headers["content-encoding"] == "gzip"
    Request.new(line.chomp, headers, body)
  end

  def decode(bodies)
    input = bodies.map { |body| "#{[body].pack('m0')}\n" }.join
    reader = File.join(__dir__, "traces_to_json.py")
    output, errors, ended = Open3.capture3(self.class.python, reader, stdin_data: input)
    raise "not by the schema: #{errors}" unless ended.success?

    output.lines.flat_map { |line| spans_of(JSON.parse(line)) }
  end

  def spans_of(request)
    request.fetch("resourceSpans").flat_map do |of_resource|
      resource = attributes(of_resource.fetch("resource"))
      of_resource.fetch("scopeSpans").flat_map { |scope| scope.fetch("spans").map { |span| span_of(span, resource) } }
    end
  end

  def span_of(span, resource)
    id = ->(name) { span[name]&.unpack1("m0")&.unpack1("H*") }
    Span.new(id["traceId"], id["spanId"], id["parentSpanId"], span["name"], span["kind"].delete_prefix("SPAN_KIND_"),
             Integer(span["startTimeUnixNano"]), Integer(span["endTimeUnixNano"]), attributes(span), span["traceState"],
             span.dig("status", "code") == "STATUS_CODE_ERROR", resource)
  end

  def attributes(message)
    message.fetch("attributes", []).to_h do |attribute|
      value = attribute.fetch("value")
      [attribute.fetch("key"), value.key?("intValue") ? Integer(value["intValue"]) : value["stringValue"]]
    end
  end
end
