# frozen_string_literal: true

# Requests by their expected outcome. Every refused one asks for REFUSED_PATH, so that the application notices one that
# got through.
module Corpus
  REFUSED_PATH = "/refused"

  # A request with this in place of its usual parts.
  def self.request(line: "GET #{REFUSED_PATH} HTTP/1.1", fields: "", host: "Host: test\r\n", body: "")
    "#{line}\r\n#{host}#{fields}\r\n#{body}".b
  end

  def self.post(fields, body = "")
    request(line: "POST #{REFUSED_PATH} HTTP/1.1", fields: fields, body: body)
  end

  def self.chunked(body)
    post("Transfer-Encoding: chunked\r\n", body)
  end

  # name => [status, bytes]. Each is answered so, and the connection is closed. RFC 9112 and RFC 9110.
  REFUSED = {
    # The request line (RFC 9112, section 3)
    "no version" => [400, request(line: "GET #{REFUSED_PATH}")],
    "two spaces before the target" => [400, request(line: "GET  #{REFUSED_PATH} HTTP/1.1")],
    "two spaces before the version" => [400, request(line: "GET #{REFUSED_PATH}  HTTP/1.1")],
    "tab instead of space" => [400, request(line: "GET\t#{REFUSED_PATH}\tHTTP/1.1")],
    "space at the end of the line" => [400, request(line: "GET #{REFUSED_PATH} HTTP/1.1 ")],
    "space in the target" => [400, request(line: "GET #{REFUSED_PATH}/a b HTTP/1.1")],
    "leading space" => [400, request(line: " GET #{REFUSED_PATH} HTTP/1.1")],
    "method with a bracket" => [400, request(line: "G(T #{REFUSED_PATH} HTTP/1.1")],
    "empty method" => [400, request(line: " #{REFUSED_PATH} HTTP/1.1")],
    "endless method" => [501, request(line: "#{'M' * 200} #{REFUSED_PATH} HTTP/1.1")],
    "CONNECT" => [501, request(line: "CONNECT test:443 HTTP/1.1")],
    "target without a slash" => [400, request(line: "GET refused HTTP/1.1")],
    "asterisk for GET" => [400, request(line: "GET * HTTP/1.1")],
    "control character in the target" => [400, request(line: "GET #{REFUSED_PATH}/\x01 HTTP/1.1")],
    "NUL in the target" => [400, request(line: "GET #{REFUSED_PATH}/\0 HTTP/1.1")],
    "DEL in the target" => [400, request(line: "GET #{REFUSED_PATH}/\x7f HTTP/1.1")],
    "lower-case version" => [400, request(line: "GET #{REFUSED_PATH} http/1.1")],
    "version with two digits" => [400, request(line: "GET #{REFUSED_PATH} HTTP/1.10")],
    "version with a comma" => [400, request(line: "GET #{REFUSED_PATH} HTTP/1,1")],
    "version without a minor" => [400, request(line: "GET #{REFUSED_PATH} HTTP/1")],
    "another protocol" => [400, request(line: "GET #{REFUSED_PATH} ICY/1.1")],
    "HTTP/2.0 in a request line" => [505, request(line: "GET #{REFUSED_PATH} HTTP/2.0")],
    "HTTP/2.1" => [505, request(line: "GET #{REFUSED_PATH} HTTP/2.1")],
    "HTTP/0.9 with a version" => [505, request(line: "GET #{REFUSED_PATH} HTTP/0.9")],
    "target too long" => [414, request(line: "GET #{REFUSED_PATH}?#{'q' * 17_000} HTTP/1.1")],
    "TLS handshake" => [400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03#{"\xaa" * 32}\r\n\r\n".b],

    # Line ends (section 2.2)
    "bare LF after the request line" => [400, "GET #{REFUSED_PATH} HTTP/1.1\nHost: test\r\n\r\n".b],
    "bare LF after a field" => [400, "GET #{REFUSED_PATH} HTTP/1.1\r\nHost: test\nX: 1\r\n\r\n".b],
    "bare LF everywhere" => [400, "GET #{REFUSED_PATH} HTTP/1.1\nHost: test\n\n".b],
    "bare LF at the end" => [400, "GET #{REFUSED_PATH} HTTP/1.1\r\nHost: test\r\n\n".b],
    "bare CR in a value" => [400, request(fields: "X: a\rb\r\n")],
    "bare CR in the request line" => [400, request(line: "GET #{REFUSED_PATH}\r HTTP/1.1")],
    "two CR before LF" => [400, request(fields: "X: a\r\r\n")],

    # Fields (section 5)
    "space before a colon" => [400, request(fields: "X : a\r\n")],
    "tab before a colon" => [400, request(fields: "X\t: a\r\n")],
    "space before the length's colon" => [400, post("Content-Length : 3\r\n", "abc")],
    "folded field" => [400, request(fields: "X: a\r\n b\r\n")],
    "field folded with a tab" => [400, request(fields: "X: a\r\n\tb\r\n")],
    "white space before the first field" => [400, "GET #{REFUSED_PATH} HTTP/1.1\r\n Host: test\r\n\r\n".b],
    "no colon" => [400, request(fields: "garbage\r\n")],
    "no name" => [400, request(fields: ": a\r\n")],
    "name with a space" => [400, request(fields: "X Y: a\r\n")],
    "name with a slash" => [400, request(fields: "X/Y: a\r\n")],
    "name that is not ASCII" => [400, request(fields: "X\xe9: a\r\n")],
    "NUL in a name" => [400, request(fields: "X\0Y: a\r\n")],
    "NUL in a value" => [400, request(fields: "X: a\0b\r\n")],
    "control character in a value" => [400, request(fields: "X: a\x07b\r\n")],
    "DEL in a value" => [400, request(fields: "X: a\x7fb\r\n")],
    "too many fields" => [431, request(fields: "X: a\r\n" * 200)],
    "head too large" => [431, request(fields: "X: #{'a' * 70_000}\r\n")],

    # Host (RFC 9112, section 3.2)
    "no Host" => [400, request(host: "")],
    "two Hosts" => [400, request(host: "Host: test\r\nHost: test\r\n")],
    "two different Hosts" => [400, request(host: "Host: test\r\nHost: other\r\n")],
    "empty Host" => [400, request(host: "Host:\r\n")],
    "Host with a path" => [400, request(host: "Host: test/path\r\n")],
    "Host with a user" => [400, request(host: "Host: user@test\r\n")],
    "Host with a space" => [400, request(host: "Host: te st\r\n")],
    "Host with a comma" => [400, request(host: "Host: test, other\r\n")],
    "Host with a bad port" => [400, request(host: "Host: test:port\r\n")],
    "Host with too large a port" => [400, request(host: "Host: test:65536\r\n")],
    "Host with half an address" => [400, request(host: "Host: [::1\r\n")],

    # Length (section 6.3)
    "two equal lengths" => [400, post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")],
    "two different lengths" => [400, post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd")],
    "a list of lengths" => [400, post("Content-Length: 3, 3\r\n", "abc")],
    "negative length" => [400, post("Content-Length: -1\r\n", "abc")],
    "length with a plus" => [400, post("Content-Length: +3\r\n", "abc")],
    "length in hex" => [400, post("Content-Length: 0x3\r\n", "abc")],
    "length with a point" => [400, post("Content-Length: 3.0\r\n", "abc")],
    "length with an underscore" => [400, post("Content-Length: 1_0\r\n", "abcdefghij")],
    "length with a space inside" => [400, post("Content-Length: 1 0\r\n", "abcdefghij")],
    "empty length" => [400, post("Content-Length:\r\n", "abc")],
    "length in other digits" => [400, post("Content-Length: \u0663\r\n", "abc")],
    "length beyond 64 bits" => [400, post("Content-Length: 18446744073709551616\r\n", "abc")],
    "endless length" => [400, post("Content-Length: #{'9' * 100}\r\n", "abc")],
    "length beside chunked" => [400, post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")],
    "chunked beside length" => [400, post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n")],

    # Transfer codings (section 6.1)
    "chunked from HTTP/1.0" => [400, chunked("0\r\n\r\n").sub("HTTP/1.1", "HTTP/1.0")],
    "identity" => [[400, 501], post("Transfer-Encoding: identity\r\n", "abc")],
    "gzip alone" => [[400, 501], post("Transfer-Encoding: gzip\r\n", "abc")],
    "unknown coding before chunked" => [501, post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")],
    "chunked before another" => [[400, 501], post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")],
    "chunked twice" => [400, post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n")],
    "chunked twice in two fields" => [400, post("Transfer-Encoding: chunked\r\n" * 2, "0\r\n\r\n")],
    "chunked with a parameter" => [[400, 501], post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n")],
    "something that contains chunked" => [[400, 501], post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")],
    "chunked in quotes" => [[400, 501], post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")],
    "chunked with a vertical tab" => [400, post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n")],
    "empty coding" => [400, post("Transfer-Encoding:\r\n", "abc")],

    # Chunked bodies (section 7.1)
    "chunk size that is no number" => [400, chunked("x\r\nabc\r\n0\r\n\r\n")],
    "negative chunk size" => [400, chunked("-1\r\nabc\r\n0\r\n\r\n")],
    "chunk size with 0x" => [400, chunked("0x3\r\nabc\r\n0\r\n\r\n")],
    "chunk size with a plus" => [400, chunked("+3\r\nabc\r\n0\r\n\r\n")],
    "chunk size with an underscore" => [400, chunked("1_0\r\n#{'a' * 16}\r\n0\r\n\r\n")],
    "chunk size with a space before" => [400, chunked(" 3\r\nabc\r\n0\r\n\r\n")],
    "chunk size with a space after" => [400, chunked("3 \r\nabc\r\n0\r\n\r\n")],
    "empty chunk size" => [400, chunked("\r\nabc\r\n0\r\n\r\n")],
    "chunk size beyond 64 bits" => [400, chunked("1#{'0' * 16}\r\nabc\r\n0\r\n\r\n")],
    "chunk size with many zeros" => [400, chunked("#{'0' * 1_000}3\r\nabc\r\n0\r\n\r\n")],
    "chunk size line with bare LF" => [400, chunked("3\nabc\r\n0\r\n\r\n")],
    "chunk that is longer than it says" => [400, chunked("3\r\nabcd\r\n0\r\n\r\n")],
    "chunk that ends in bare LF" => [400, chunked("3\r\nabc\n0\r\n\r\n")],
    "chunk extension with a bare LF" => [400, chunked("3;a\n\r\nabc\r\n0\r\n\r\n")],
    "chunk extension without a name" => [400, chunked("3;\r\nabc\r\n0\r\n\r\n")],
    "chunk extension without a name, behind a space" => [400, chunked("3 ;\r\nabc\r\n0\r\n\r\n")],
    "chunk extension that is none" => [400, chunked("3;;a\r\nabc\r\n0\r\n\r\n")],
    "chunk extension of a value alone" => [400, chunked("3;=a\r\nabc\r\n0\r\n\r\n")],
    "chunk extension with NUL" => [400, chunked("3;a=\0\r\nabc\r\n0\r\n\r\n")],
    "endless chunk extension" => [400, chunked("3;#{'a' * 100_000}\r\nabc\r\n0\r\n\r\n")],
    "last chunk with bare LF" => [400, chunked("3\r\nabc\r\n0\n\n")],
    "trailer without a colon" => [400, chunked("3\r\nabc\r\n0\r\ngarbage\r\n\r\n")],
    "folded trailer" => [400, chunked("3\r\nabc\r\n0\r\nX: a\r\n b\r\n\r\n")],
    "trailer with a bare LF" => [400, chunked("3\r\nabc\r\n0\r\nX: a\n\r\n")],
    "trailers too large" => [431, chunked("3\r\nabc\r\n0\r\nX: #{'a' * 70_000}\r\n\r\n")],

    "unknown expectation" => [417, post("Expect: a-miracle\r\nContent-Length: 3\r\n", "abc")]
  }.freeze

  # name => bytes. Each is answered 200 by /echo: what looks unusual, and has to work.
  ACCEPTED = {
    "plain" => "GET /echo HTTP/1.1\r\nHost: test\r\n\r\n",
    "empty line before the request" => "\r\nGET /echo HTTP/1.1\r\nHost: test\r\n\r\n",
    "no space after a colon" => "GET /echo HTTP/1.1\r\nHost:test\r\nX:a\r\n\r\n",
    "white space around a value" => "GET /echo HTTP/1.1\r\nHost: \t test \t\r\n\r\n",
    "empty value" => "GET /echo HTTP/1.1\r\nHost: test\r\nX:\r\n\r\n",
    "later minor version" => "GET /echo HTTP/1.2\r\nHost: test\r\n\r\n",
    "target with UTF-8" => "GET /echo?caf\xc3\xa9 HTTP/1.1\r\nHost: test\r\n\r\n",
    "Host with a port" => "GET /echo HTTP/1.1\r\nHost: test:8080\r\n\r\n",
    "Host with an IPv6 address" => "GET /echo HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
    "value that is not ASCII" => "GET /echo HTTP/1.1\r\nHost: test\r\nX: caf\xc3\xa9 \xe9\r\n\r\n",
    "name with all token characters" => "GET /echo HTTP/1.1\r\nHost: test\r\n!#$%&'*+-.^_`|~09aZ: a\r\n\r\n",
    "own method" => "BREW /echo HTTP/1.1\r\nHost: test\r\n\r\n",
    "absolute form" => "GET http://other/echo HTTP/1.1\r\nHost: test\r\n\r\n",
    "HTTP/1.0 without Host" => "GET /echo HTTP/1.0\r\n\r\n",
    "length with zeros before" => "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 003\r\n\r\nabc",
    "length zero" => "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n",
    "body for GET" => "GET /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc",
    "chunked" => "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "Chunked in capitals" => "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: CHUNKED\r\n\r\n" \
                             "3\r\nabc\r\n0\r\n\r\n",
    "chunk extensions" => "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" \
                          "3;a=b;c=\"d;e\"\r\nabc\r\n0;last\r\n\r\n",
    "chunk sizes with zeros" => "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" \
                                "00A\r\n0123456789\r\n0b\r\n0123456789a\r\n00\r\n\r\n",
    "trailers" => "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" \
                  "3\r\nabc\r\n0\r\nX-Sum: 1\r\nContent-Length: 99\r\n\r\n"
  }.transform_values(&:b).freeze
end
