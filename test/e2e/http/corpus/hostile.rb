# frozen_string_literal: true

require_relative "requests"

module Corpus
  # An endless supply of hostile requests, the same ones for the same seed.
  class Hostile
    # kind:: what was done to it.
    # bytes:: what to send.
    # statuses:: what may come back; a closed connection is always right.
    # abrupt:: whether the client leaves by a reset instead of reading.
    Request = Struct.new(:kind, :bytes, :statuses, :abrupt, keyword_init: true)

    KINDS = %i[refused truncated poisoned oversized noise garbage abandoned].freeze
    REFUSALS = [400, 405, 408, 411, 413, 414, 417, 431, 501, 505].freeze
    ANYTHING = [*REFUSALS, 100, 200, 403, 404].freeze
    # Bytes that no request head may have anywhere, whatever stands around them.
    POISON = ["\0", "\x01", "\x07", "\x08", "\x0b", "\x0c", "\x1b", "\x7f", "\r", "\n"].freeze
    # Pieces that have confused parsers.
    SPICE = ["\r\n", "\r", "\n", "\0", " ", "\t", ":", ",", ";", "%", "%00", "%2e%2e/", "../", "\\", "\xff", "\xc0\x80",
             "chunked", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: x\r\n", "0\r\n\r\n",
             "ffffffffffffffff", "-1", "HTTP/1.1", "GET /noise HTTP/1.1\r\n", "{{", "A" * 300].map(&:b).freeze

    WRONG = REFUSED.reject { |refused| OF_LIMITS.include?(refused.first) }.freeze

    def initialize(seed)
      @random = Random.new(seed)
    end

    def next
      kind = pick(KINDS)
      send(kind)
    end

    private

    # One of those with a known answer, whatever the limits are.
    def refused
      status, bytes = pick(WRONG)
      Request.new(kind: :refused, bytes: bytes, statuses: [status])
    end

    # A right request that ends too early.
    def truncated
      whole = accepted(REFUSED_PATH)
      Request.new(kind: :truncated, bytes: whole[0, 1 + @random.rand(whole.bytesize - 1)], statuses: REFUSALS)
    end

    # A right request with one byte in its head that makes it wrong.
    def poisoned
      whole = accepted(REFUSED_PATH)
      # Not before the first byte: an empty line may stand there.
      place = 1 + @random.rand(whole.index("\r\n\r\n") - 1)
      Request.new(kind: :poisoned, bytes: whole.insert(place, pick(POISON)), statuses: REFUSALS)
    end

    # Something beyond a limit; the body's is 1 MiB.
    def oversized
      excess = @random.rand(200_000)
      bytes =
        case @random.rand(7)
        when 0 then Corpus.request(line: "GET #{REFUSED_PATH}?#{'q' * (20_000 + excess)} HTTP/1.1")
        when 1 then Corpus.request(fields: "X: #{'v' * (70_000 + excess)}\r\n")
        when 2 then Corpus.request(fields: "X: a\r\n" * (200 + (excess / 40)))
        when 3 then Corpus.post("Content-Length: #{2_000_000 + (excess**3)}\r\n", "abc")
        when 4 then Corpus.chunked("#{(2_000_000 + (excess**2)).to_s(16)}\r\n#{'x' * 1_000}")
        when 5 then Corpus.chunked("10000\r\n#{'x' * 65_536}\r\n" * 20)
        else Corpus.chunked("1\r\nx\r\n0\r\n#{"T: t\r\n" * 20_000}\r\n")
        end
      Request.new(kind: :oversized, bytes: bytes, statuses: [413, 414, 431, 400])
    end

    # A right request with anything done to it: it may well still be right.
    def noise
      bytes = accepted("/noise")
      (1 + @random.rand(4)).times { mutate(bytes) }
      Request.new(kind: :noise, bytes: bytes, statuses: ANYTHING)
    end

    def mutate(bytes)
      place = @random.rand(bytes.bytesize)
      case @random.rand(4)
      when 0 then bytes.insert(place, pick(SPICE))
      when 1 then bytes.slice!(place, 1 + @random.rand(8))
      when 2 then bytes.setbyte(place, @random.rand(256))
      else bytes.insert(@random.rand(bytes.bytesize), bytes[place, 1 + @random.rand(40)])
      end
      bytes << "\r\n\r\n" if bytes.empty?
    end

    # No HTTP at all.
    def garbage
      bytes = @random.bytes(1 + @random.rand(2_000))
      bytes = "#{bytes}\r\n\r\n".b if @random.rand(2).zero?
      Request.new(kind: :garbage, bytes: bytes, statuses: REFUSALS)
    end

    # A beginning, and a client that is gone.
    def abandoned
      whole = accepted(REFUSED_PATH)
      Request.new(kind: :abandoned, bytes: whole[0, 1 + @random.rand(whole.bytesize - 1)], statuses: [], abrupt: true)
    end

    def accepted(path)
      pick(ACCEPTED.values).gsub("/echo", path)
    end

    def pick(list)
      list[@random.rand(list.length)]
    end
  end
end
