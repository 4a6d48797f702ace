# frozen_string_literal: true

require "digest/sha2" # not when it is first used: two threads at once may find half of it
require "json"
require "rack"
require "timeout"

# Shows how the server treats it: what arrived, what was closed, and the effect of each kind of body and of each
# misbehaviour. One method per path.
class Probe
  UNLINTED = %w[* /file /hijack /stream /wrong /array /kill-thread].freeze
  TARGETS_KEPT = 20_000
  BLOCK = (0..255).map(&:chr).join.b.*(256).freeze # 64 KiB

  # Answers HEAD with a body, as many applications do.
  def self.linted?(env)
    env["REQUEST_METHOD"] != "HEAD" && UNLINTED.none? { |prefix| env["PATH_INFO"].start_with?(prefix) }
  end

  # A body of the given size, the same on every call, in pieces.
  class Pieces
    def initialize(bytes, pause: 0, piece: BLOCK.bytesize, &closed)
      @bytes = bytes
      @pause = pause
      @piece = piece
      @closed = closed
    end

    def each
      left = @bytes
      while left.positive?
        yield BLOCK[0, [left, @piece].min]
        left -= @piece
        sleep @pause if @pause.positive?
      end
    end

    # Counts once: `to_ary` closes as well (Rack SPEC), and a server may close again.
    def close
      @closed&.call
      @closed = nil
    end
  end

  # A body that fails on the way.
  class Broken < Pieces
    def each
      yield "a beginning\n"
      raise "the body broke"
    end
  end

  # A body that is a file.
  class OnDisk < Pieces
    def initialize(path, &closed)
      super(0, &closed)
      @path = path
    end

    def to_path
      @path
    end

    def each
      yield File.binread(@path)
    end
  end

  # A body that knows all its parts.
  class Parts < Pieces
    def to_ary
      parts = ["one ", "two ", "three"]
      close
      parts
    end

    def each(&block)
      ["one ", "two ", "three"].each(&block)
    end
  end

  # A body whose `to_ary` returns nil, as in Rails 6.1.
  class NoParts < Parts
    def to_ary
      nil
    end
  end

  def initialize
    @lock = Mutex.new
    @count = 0
    @targets = []
    @closed = 0
    @finished = []
    @released = Queue.new
  end

  def call(env)
    seen(env)
    action = ACTIONS[env["PATH_INFO"]] or return [404, plain, ["no #{env['PATH_INFO']}\n"]]
    send(action, env, Rack::Utils.parse_query(env["QUERY_STRING"]))
  end

  # --- what arrived

  def root(_env, _query)
    [200, plain, ["probe\n"]]
  end

  def echo(env, _query)
    body = env["rack.input"]&.read.to_s
    json(env_strings(env).merge("body_bytes" => body.bytesize, "body_sha256" => Digest::SHA256.hexdigest(body),
                                "body" => body.dup.force_encoding("UTF-8").scrub))
  end

  def upload(env, _query)
    digest = Digest::SHA256.new
    bytes = 0
    buffer = +""
    while env["rack.input"]&.read(65_536, buffer)
      digest << buffer
      bytes += buffer.bytesize
    end
    json("bytes" => bytes, "sha256" => digest.hexdigest)
  end

  def input(env, _query)
    input = env["rack.input"]
    lines = [input&.gets, input&.read(3), input&.read]
    input.rewind if input.respond_to?(:rewind)
    json("lines" => lines, "again" => input&.read)
  end

  def pid(_env, _query)
    [200, plain, [Process.pid.to_s]]
  end

  # The number of requests that reached Ruby before this one, their paths, and the number of closed bodies.
  def count(_env, query)
    @lock.synchronize do
      answer = { "count" => @count - 1, "closed" => @closed, "finished" => @finished.dup }
      answer["targets"] = @targets[0...-1] if query["targets"]
      json(answer)
    end
  end

  # --- taking time

  def sleep_(env, query)
    log_start(env)
    sleep query.fetch("ms").to_i / 1000.0
    [200, plain, ["slept\n"]]
  end

  def timeout(env, query)
    log_start(env)
    Timeout.timeout(query.fetch("ms").to_i / 1000.0) { sleep }
  rescue Timeout::Error
    [200, plain, ["timed out\n"]]
  end

  def cpu(env, query)
    log_start(env)
    ends_at = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (query.fetch("ms").to_i / 1000.0)
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends_at
    [200, plain, [Process.pid.to_s]]
  end

  # --- bodies

  def download(_env, query)
    bytes = query.fetch("bytes").to_i
    headers = { "content-type" => "application/octet-stream" }
    headers["content-length"] = bytes.to_s if query["length"]
    pieces = Pieces.new(bytes, pause: query.fetch("pause_ms", 0).to_i / 1000.0,
                               piece: query.fetch("piece", BLOCK.bytesize).to_i) { closed }
    [200, headers, pieces]
  end

  # A line at once, and another one after a request for /release.
  def held(_env, _query)
    lines = Enumerator.new do |line|
      line << "first\n"
      line << "#{@released.pop}\n"
    end
    [200, plain, lines]
  end

  def release(_env, _query)
    @released << "last"
    [200, plain, ["released\n"]]
  end

  def array(_env, _query)
    [200, plain, Parts.new(0) { closed }]
  end

  def array_of_none(_env, _query)
    [200, plain, NoParts.new(0) { closed }]
  end

  def file(_env, _query)
    [200, { "content-type" => "application/octet-stream" }, OnDisk.new(ENV.fetch("PROBE_FILE")) { closed }]
  end

  # Rack 3's streaming body: sends back what it reads until the client ends.
  def stream(_env, query)
    body = lambda do |stream|
      query.fetch("parts", 3).to_i.times { |number| stream.write("part #{number}\n") }
      stream.flush
    ensure
      stream.close
      closed
    end
    [200, plain, body]
  end

  def status(_env, query)
    code = query.fetch("code").to_i
    without_body = [204, 304].include?(code)
    [code, without_body ? {} : plain, without_body ? [] : ["#{code}\n"]]
  end

  def many_headers(_env, _query)
    cookies = Rack.release >= "3" ? %w[a=1 b=2] : "a=1\nb=2"
    [200, plain.merge("set-cookie" => cookies, "x-empty" => "", "x-latin" => "caf\xE9".b), ["ok\n"]]
  end

  def early(env, _query)
    env["rack.early_hints"]&.call({ "link" => "</style.css>; rel=preload" })
    [200, plain, ["late\n"]]
  end

  def finish(env, _query)
    env["rack.response_finished"]&.push(->(_env, status, _headers, error) { finished([status, error&.message]) })
    [200, plain, ["ok\n"]]
  end

  # --- taking the connection

  # Full hijack: the app handles the connection from here on, a line at a time.
  def hijack(env, _query)
    socket = env["rack.hijack"].call
    Thread.new do
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
      while (line = socket.gets)
        socket.write("echo #{line}")
      end
    ensure
      socket.close
    end
    [-1, {}, []]
  end

  # Partial hijack: the server sends the head, the app the rest.
  def hijack_partial(_env, _query)
    speak = lambda do |socket|
      socket.write("first\n")
      while (line = socket.gets)
        socket.write("echo #{line}")
      end
    ensure
      socket.close
    end
    [200, plain.merge("rack.hijack" => speak), []]
  end

  # --- misbehaviour

  def raise_(_env, _query)
    raise ArgumentError, "raised on purpose"
  end

  def raise_late(_env, query)
    body = Broken.new(0) { closed }
    [200, query["length"] ? plain.merge("content-length" => "1000") : plain, body]
  end

  def throw_(_env, _query)
    throw :uncaught
  end

  def exit_(_env, _query)
    exit 3
  end

  def deep(env, query)
    deep(env, query)
  end

  def kill_thread(_env, _query)
    Thread.current.kill
  end

  def die(_env, _query)
    Process.kill(:KILL, Process.pid)
    sleep
  end

  def wrong_status(_env, _query)
    ["no number", plain, ["wrong\n"]]
  end

  def wrong_header(_env, _query)
    [200, plain.merge("x-split" => "a\r\nSet-Cookie: stolen=1"), ["wrong\n"]]
  end

  def wrong_triplet(_env, _query)
    nil
  end

  def wrong_body(_env, _query)
    [200, plain, 42]
  end

  def wrong_length(_env, query)
    pieces = %w[tw elve-bytes]
    body = { "array" => pieces, "each" => pieces.each,
             "pause" => pieces.each.lazy.map { |piece| sleep(0.05) && piece } }
    [200, plain.merge("content-length" => query.fetch("length", "3")), body.fetch(query.fetch("shape", "array"))]
  end

  # Methods by path: "/kill-thread" is kill_thread, "/raise" is raise_ (not Ruby's own raise), "/" is root.
  ACTIONS = (public_instance_methods(false) - %i[call root])
            .to_h { |name| ["/#{name.to_s.delete_suffix('_').tr('_', '-')}", name] }
            .merge("/" => :root, "*" => :root).freeze

  private

  def plain
    { "content-type" => "text/plain" }
  end

  def json(object)
    [200, { "content-type" => "application/json" }, [JSON.generate(object)]]
  end

  def env_strings(env)
    { "env" => env.select { |name, value| value.is_a?(String) && !name.start_with?("rack.", "puma.") }
                  .transform_values { |value| value.dup.force_encoding("UTF-8").scrub },
      "rack" => env.keys.grep(/\Arack\./).sort }
  end

  # Prints to the server's log: tests wait for this line when they need a request in flight.
  def log_start(env)
    $stderr.write("probe begins #{env['PATH_INFO']}\n")
  end

  def seen(env)
    @lock.synchronize do
      @count += 1
      @targets << "#{env['REQUEST_METHOD']} #{env['PATH_INFO']}" if @targets.length < TARGETS_KEPT
    end
  end

  def closed
    @lock.synchronize { @closed += 1 }
  end

  def finished(what)
    @lock.synchronize { @finished << what }
  end
end
