# frozen_string_literal: true

require_relative "hijack"
require_relative "sendfile"
require_relative "sent_file"
require_relative "stream"

module Highball
  # Sends a Rack response whose body is not an Array of Strings, or whose headers are not a Hash of Strings; the ring
  # sends those in one call. (Rack SPEC, "The Response".) The body's +close+ is always called.
  class Answer
    # The most bytes of a body that the ring sends whole.
    LARGE = 48 * 1024
    # Of a file that is copied.
    PIECE = 64 * 1024

    # What stands in the place of a file that must not be sent.
    NOT_FOUND = [404, { "content-type" => "text/plain", "content-length" => "10" }.freeze,
                 ["Not Found\n"].freeze].freeze

    # rubocop:disable Metrics/ParameterLists -- the three of a Rack response, and where it goes

    # sendfile:: a Sendfile, or nil where headers that name files are passed on. Yields why a file is not sent.
    def self.send(ring, ticket, env, status, headers, body, sendfile: nil, &refused)
      new(ring, ticket, env, status.to_i, headers, body).deliver(sendfile, &refused)
      ring.finish(ticket)
    ensure
      body.close if body.respond_to?(:close)
    end

    def initialize(ring, ticket, env, status, headers, body)
      @ring = ring
      @ticket = ticket
      @env = env
      @status = status
      @headers = headers
      @body = body
    end
    # rubocop:enable Metrics/ParameterLists

    def deliver(sendfile = nil, &refused)
      return if @ring.hijacked?(@ticket) # a full hijack: the response is ignored
      return if whole?

      make_usual
      named = take_name if sendfile
      return hand_over(@hijack) if @hijack
      return send_named(sendfile, named, &refused) if named
      return if sent_as_file?

      send_body
    end

    private

    def send_body
      add_length if @body.instance_of?(Array) && @body.method(:each).owner == Array
      return head if @ring.head_request?(@ticket)

      if @body.respond_to?(:each) then each
      elsif @body.respond_to?(:call) then call
      else
        raise TypeError, "the body of a response must respond to each or call, and #{@body.class} does not"
      end
    end

    # Sends the body's Array, if it has one; `close` still goes to the body itself. (Rails 6.1's body returns nil from
    # `to_ary` and expects `each`.)
    def whole?
      return false if @body.instance_of?(Array) || !@body.respond_to?(:to_ary)

      parts = @body.to_ary or return false
      @body = parts
      @ring.answer(@ticket, @status, @headers, parts)
    end

    # Header names and values as Strings or Arrays of Strings, without headers that are meant for the server.
    def make_usual
      usual = {}
      @headers.each do |name, value|
        case name
        when "rack.hijack" then @hijack = value
        when "rack.protocol" then upgrade(usual, value)
        else add(usual, name.to_s, value)
        end
      end
      @headers = usual
    end

    # A field may come more than once where the headers are not a Hash.
    def add(headers, name, value)
      value = value.is_a?(Array) ? value.map(&:to_s) : value.to_s
      headers[name] = headers.key?(name) ? [*headers[name], *value] : value
    end

    # The app accepts a protocol that the client has offered (Rack 3.1 SPEC, "The rack.protocol Header").
    def upgrade(headers, protocol)
      @status = 101
      headers["upgrade"] = protocol.to_s
      headers["connection"] = "upgrade"
    end

    # Partial hijack: the head goes out, then the app has the connection, unless it fails at once.
    def hand_over(callable)
      head(hijack: true)
      socket = Hijack.take_over(@ring, @ticket)
      callable.call(socket)
      handed_over = true
    ensure
      socket&.close unless handed_over
    end

    # Takes the headers that name a file away: they are not for the client. Returns the first, name and value.
    def take_name
      names, @headers = @headers.partition { |name, _| Sendfile.header?(name) }.map(&:to_h)
      name, value = names.first
      [name, Array(value).first.to_s] if name && @status >= 200 && @status != 204 && @status != 304
    end

    # The application's headers hold for the file, but for the length and the part: those are of the body that it has
    # left empty.
    def send_named(sendfile, named)
      file = SentFile.new(sendfile.open(*named))
    rescue Sendfile::Refused => e
      yield e.message
      @status, @headers, @body = NOT_FOUND
      send_body
    else
      @status = 200 if @status == 206
      @headers.delete_if { |name, _| name.match?(/\A(?:content-length|content-range|transfer-encoding)\z/i) }
      @headers["content-length"] = file.size.to_s
      send_file(file)
    end

    # A body that is a file goes out as one, and by `each` if that cannot be opened, or if it is a part: that is for the
    # body to choose.
    def sent_as_file?
      return if @status == 206 || !@body.respond_to?(:to_path)

      path = @body.to_path or return
      file = SentFile.at(path) or return
      send_file(file)
      true
    end

    def send_file(file)
      return copy(file) if @ring.left?(@ticket)

      is_whole = @status == 200 && file.whole_under?(@headers)
      wanted = is_whole ? @ring.head_of_file(@ticket, @status, file.describe(@headers)) : head
      return if !wanted || file.size.zero? || @ring.head_request?(@ticket)

      @ring.file(@ticket, file.fileno, 0, file.size)
    ensure
      file.close
    end

    # A request on a fiber cannot hand a file over.
    def copy(file)
      return head if @ring.head_request?(@ticket)

      @headers["content-length"] ||= file.size.to_s unless @headers.keys.any? { |name| name.casecmp?("content-length") }
      return unless head

      source = IO.for_fd(file.fileno, "rb", autoclose: false)
      nil while (piece = source.read(PIECE)) && @ring.write(@ticket, piece)
    ensure
      file.close
    end

    # The head goes out with the first chunk, so that a body that fails at once can still become a 500.
    def each
      started = false
      @body.each do |chunk|
        wanted = started ? @ring.write(@ticket, chunk) : @ring.begin(@ticket, @status, @headers, chunk)
        started = true
        break unless wanted
      end
      head unless started
    end

    # A large Array of Strings is sent in pieces, but its length is known, so that clients need not be sent chunks. (The
    # front counts the bytes of small ones.)
    def add_length
      return if @status < 200 || @status == 204 || @status == 304 || !@body.all?(String)
      return if @headers.keys.any? { |name| /\A(content-length|transfer-encoding)\z/i.match?(name) }

      length = @body.sum(&:bytesize)
      @headers["content-length"] = length.to_s if length > LARGE
    end

    # A streaming body (Rack 3). After an upgrade it has the connection itself.
    def call
      return hand_over(@body) if @status == 101

      @ring.head_of_stream(@ticket, @status, @headers)
      @body.call(Stream.new(@ring, @ticket, @env["rack.input"]))
    end

    def head(hijack: false)
      @ring.head(@ticket, @status, @headers, hijack)
    end
  end
end
