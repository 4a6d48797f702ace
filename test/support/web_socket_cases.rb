# frozen_string_literal: true

# What a client sends on a WebSocket, by the categories of the Autobahn test suite: framing, pings, reserved bits,
# reserved opcodes, fragments, UTF-8, closing, and large messages. Each case ends with a close frame, or with what the
# other side has to answer by one.
module WebSocketCases
  # What is sent, in pieces that are written one by one.
  Case = Struct.new(:name, :pieces)

  CONTINUATION = 0
  TEXT = 1
  BINARY = 2
  CLOSE = 8
  PING = 9
  PONG = 10

  MASK = "\x37\xfa\x21\x3d".b
  RSV1 = 0x40
  RSV2 = 0x20
  RSV3 = 0x10
  KIB = 1024
  MIB = 1024 * KIB

  # Valid in UTF-8, and at its borders (Unicode, section 3.9).
  VALID = ["", "κόσμε", "\u{0}", "\u{7f}", "\u{80}", "\u{7ff}", "\u{800}", "\u{ffff}", "\u{10000}", "\u{10ffff}",
           "\u{d7ff}", "\u{e000}", "\u{fffd}", "\u{fffe}", "\u{1fffe}", "\u{2ffff}"].map(&:b).freeze
  # Not valid: stray and missing continuation bytes, forms that are too long, surrogates, values beyond Unicode's.
  INVALID = ["\x80", "\xbf", "\x80\xbf", "\xc0", "\xc0 ", "\xe0 ", "\xf0 ", "\xf8 ", "\xc3", "\xe0\x80",
             "\xf0\x80\x80", "\xfe", "\xff", "\xfe\xfe\xff\xff", "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",
             "\xf8\x80\x80\x80\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xc0\x80", "\xed\xa0\x80",
             "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbf\xbf", "\xed\xa0\x80\xed\xb0\x80", "\xf4\x90\x80\x80",
             "\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80",
             "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"].map(&:b).freeze

  # Codes that a peer may send, and some that it may not (RFC 6455, section 7.4).
  GOOD_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999].freeze
  BAD_CODES = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535].freeze

  module_function

  def all = framing + pings + reserved + fragments + utf8 + closing + large

  # A frame of a client. `first`: further bits of its first byte.
  def frame(opcode, payload = "", fin: true, first: 0)
    payload = payload.b
    head = [(fin ? 0x80 : 0) | first | opcode].pack("C")
    head << length_bytes(payload.bytesize) << MASK << masked(payload)
  end

  # With the bit that says that a mask follows.
  def length_bytes(length)
    return [0x80 | length].pack("C") if length < 126

    length < 65_536 ? [0xfe, length].pack("Cn") : [0xff, length].pack("CQ>")
  end

  def masked(payload)
    return payload if payload.empty?

    pad = payload.bytesize.fdiv(8).ceil
    key = (MASK * 2).unpack1("Q")
    payload.ljust(pad * 8, "\0").unpack("Q*").map { |word| word ^ key }.pack("Q*").byteslice(0, payload.bytesize)
  end

  def close(code = 1000, reason = "") = frame(CLOSE, [code].pack("n") + reason.b)

  # A case of these frames, which a close frame follows.
  def closed(name, *frames) = Case.new(name, [frames.join + close])

  def chopped(bytes, size) = (0...bytes.bytesize).step(size).map { |from| bytes.byteslice(from, size) }

  def framing
    sizes = [0, 125, 126, 127, 128, 65_535, 65_536]
    whole = { "text" => TEXT, "binary" => BINARY }.flat_map do |name, opcode|
      sizes.map { |size| closed("1 #{name} of #{size} bytes", frame(opcode, "*" * size)) }
    end
    whole << Case.new("1 text of 65536 bytes in pieces of 997", chopped(frame(TEXT, "*" * 65_536) + close, 997))
  end

  def pings
    payloads = ["", "Hello, world!", "\0\xff\xfe\xfd\xfc\xfb\0\xff".b, "\xfe".b * 125]
    answered = payloads.map { |payload| closed("2 ping of #{payload.bytesize} bytes", frame(PING, payload)) }
    answered + [
      closed("2 ping of 126 bytes", frame(PING, "\xfe".b * 126)),
      Case.new("2 ping in pieces of a byte", chopped(frame(PING, "\xfe".b * 125) + close, 1)),
      closed("2 pongs that were not asked for", frame(PONG), frame(PONG, "unsolicited"), frame(PING, "ping")),
      closed("2 ten pings", *Array.new(10) { |number| frame(PING, "payload-#{number}") }),
      Case.new("2 ten pings in pieces of a byte",
               chopped(Array.new(10) { |number| frame(PING, "payload-#{number}") }.join + close, 1))
    ]
  end

  # Reserved bits without an extension, and opcodes without a meaning.
  def reserved
    bits = [RSV1, RSV2, RSV1 | RSV2, RSV3, RSV1 | RSV3, RSV2 | RSV3, RSV1 | RSV2 | RSV3].flat_map do |first|
      [TEXT, BINARY, PING, CLOSE].map do |opcode|
        closed("3 bits #{first.to_s(16)} of opcode #{opcode}", frame(TEXT, "small"), frame(opcode, "", first: first))
      end
    end
    opcodes = [*3..7, *11..15].flat_map do |opcode|
      ["", "payload"].map do |payload|
        frames = [frame(TEXT, "small"), frame(opcode, payload), frame(PING)]
        closed("4 opcode #{opcode}, #{payload.bytesize} bytes", *frames)
      end
    end
    bits + opcodes
  end

  def fragments
    one = frame(TEXT, "fragment1", fin: false)
    two = frame(CONTINUATION, "fragment2")
    middle = frame(CONTINUATION, "fragment2", fin: false)
    ping = frame(PING, "ping")
    {
      "ping in two" => [frame(PING, "a", fin: false), frame(CONTINUATION, "b")],
      "pong in two" => [frame(PONG, "a", fin: false), frame(CONTINUATION, "b")],
      "text in two" => [one, two],
      "ping between" => [one, ping, two],
      "continuation without a beginning" => [two, frame(TEXT, "Hello")],
      "unfinished continuation without a beginning" => [middle, frame(TEXT, "Hello")],
      "text within a text" => [one, frame(TEXT, "fragment2")],
      "continuation behind the end" => [one, two, frame(CONTINUATION, "fragment3")],
      "five pieces and pings" => [one, middle, ping, middle, middle, ping, two],
      "two messages" => [one, two, one, two],
      "empty pieces" => [frame(TEXT, "", fin: false), frame(CONTINUATION, "", fin: false), frame(CONTINUATION)],
      "empty pieces around one" => [frame(TEXT, "", fin: false), middle, frame(CONTINUATION)]
    }.flat_map do |name, frames|
      bytes = frames.join + close
      [Case.new("5 #{name}", [bytes]), Case.new("5 #{name}, frame by frame", [*frames, close]),
       Case.new("5 #{name}, in pieces of a byte", chopped(bytes, 1))]
    end
  end

  def utf8
    valid = VALID.flat_map { |text| text_cases("6 valid #{text.dump}", text) }
    invalid = INVALID.flat_map { |text| text_cases("6 invalid #{text.dump}", text) }
    valid + invalid
  end

  # As one frame; and split in the middle of a character.
  def text_cases(name, text)
    half = text.bytesize / 2
    split = [frame(TEXT, text[0, half], fin: false), frame(CONTINUATION, text[half..])]
    [closed(name, frame(TEXT, text)), closed("#{name}, split", *split)]
  end

  def closing
    codes = (GOOD_CODES + BAD_CODES).map { |code| Case.new("7 code #{code}", [close(code, "why")]) }
    codes + [
      Case.new("7 without a code", [frame(CLOSE)]),
      Case.new("7 with half a code", [frame(CLOSE, "\x03")]),
      Case.new("7 with a reason of 123 bytes", [close(1000, "*" * 123)]),
      Case.new("7 with a reason of 124 bytes", [close(1000, "*" * 124)]),
      Case.new("7 with a reason that is not valid", [close(1000, "\xce\xba\xed\xa0\x80".b)]),
      closed("7 after a text", frame(TEXT, "Hello World!")),
      Case.new("7 twice", [close + close]),
      Case.new("7 and a ping behind", [close + frame(PING)]),
      Case.new("7 and a text behind", [close + frame(TEXT, "Hello World!")]),
      Case.new("7 within a fragmented text", [frame(TEXT, "fragment1", fin: false) + close + frame(CONTINUATION, "2")])
    ]
  end

  def large
    sizes = [64 * KIB, 256 * KIB, MIB, 4 * MIB]
    whole = sizes.flat_map do |size|
      [closed("9 text of #{size} bytes", frame(TEXT, "*" * size)),
       closed("9 binary of #{size} bytes", frame(BINARY, "\0\xff".b * (size / 2)))]
    end
    many = [64, 4 * KIB, 64 * KIB].map do |size|
      pieces = chopped("*" * MIB, size).first(1000).map { |piece| frame(CONTINUATION, piece, fin: false) }
      closed("9 fragments of #{size} bytes", frame(BINARY, "", fin: false), *pieces, frame(CONTINUATION))
    end
    whole + many + [Case.new("9 text of 1 MiB in pieces of 1000", chopped(frame(TEXT, "*" * MIB) + close, 1000)),
                    closed("10 text of 65536 bytes in fragments of 1300", *fragmented("*" * 65_536, 1300))]
  end

  def fragmented(text, size)
    first, *rest = chopped(text, size)
    [frame(TEXT, first, fin: false), *rest.map { |piece| frame(CONTINUATION, piece, fin: false) }, frame(CONTINUATION)]
  end
end
