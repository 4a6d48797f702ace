# frozen_string_literal: true

require "rack"

# Answers that are sent while they are generated.
module Streaming
  # Server-sent events: the time, once a second, until the client goes away.
  class Clock
    def initialize(ticks)
      @ticks = ticks
    end

    def each
      @ticks.times do |number|
        yield "id: #{number}\ndata: #{Time.now.strftime('%H:%M:%S')}\n\n"
        sleep 1 if number + 1 < @ticks
      end
    end
  end

  # A file of the given size that exists only while it is sent.
  class Download
    BLOCK = ("All aboard! " * 6_000)[0, 65_536].freeze

    def initialize(bytes)
      @bytes = bytes
    end

    def each
      whole, rest = @bytes.divmod(BLOCK.bytesize)
      whole.times { yield BLOCK }
      yield BLOCK[0, rest] if rest.positive?
    end
  end

  # A few lines for Rack 2, which asks a body for its parts.
  class Lines
    COUNT = 5

    def each
      COUNT.times do |number|
        yield "line #{number + 1} of #{COUNT}\n"
        sleep 0.2
      end
    end
  end

  # The same for Rack 3, which hands a streaming body the stream.
  class StreamedLines
    def call(stream)
      Lines.new.each { |line| stream.write(line) }
    ensure
      stream.close
    end
  end

  class App
    MAX_MIB = 1024
    MAX_TICKS = 3_600

    def call(env)
      query = Rack::Utils.parse_query(env["QUERY_STRING"])
      case env["PATH_INFO"]
      when "/clock" then clock(query)
      when "/download" then download(query)
      when "/stream" then stream
      else [404, { "content-type" => "text/plain" }, ["There is no #{env['PATH_INFO']} here.\n"]]
      end
    end

    private

    def clock(query)
      headers = { "content-type" => "text/event-stream", "cache-control" => "no-store" }
      [200, headers, Clock.new(number(query["ticks"], MAX_TICKS, MAX_TICKS))]
    end

    def download(query)
      bytes = number(query["mib"], 64, MAX_MIB) * 1024 * 1024
      headers = {
        "content-type" => "application/octet-stream",
        "content-disposition" => 'attachment; filename="download.bin"',
        "content-length" => bytes.to_s
      }
      [200, headers, Download.new(bytes)]
    end

    def stream
      body = Rack.release >= "3" ? StreamedLines.new : Lines.new
      [200, { "content-type" => "text/plain" }, body]
    end

    # The number a client asked for, within 1..maximum.
    def number(text, default, maximum)
      Integer(text || default, exception: false).to_i.clamp(1, maximum)
    end
  end
end
