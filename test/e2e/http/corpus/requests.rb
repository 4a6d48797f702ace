# frozen_string_literal: true

# Requests by their expected outcome. Every refused one asks for REFUSED_PATH, so that the application notices if one
# gets through.
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

  # Of the corpus of the front's own test: the escapes of its bytes, and the limits that some of its verdicts depend on.
  FILE = File.expand_path("../../../../crates/front/src/protocol/http1/tests/hostile_requests.txt", __dir__)
  ESCAPES = { "r" => "\r", "n" => "\n", "t" => "\t", "0" => "\0" }.freeze
  LIMITS = %w[--max-target 300 --max-head 2k --max-fields 12 --max-body 1000].freeze
  OF_LIMITS = [413, 414, 431].freeze

  def self.unescape(text)
    text.gsub(/\{([^}]*)\*(\d+)\}|\\x(\h\h)|\\(.)/n) do
      next unescape(Regexp.last_match(1)) * Regexp.last_match(2).to_i if Regexp.last_match(1)
      next Regexp.last_match(3).hex.chr if Regexp.last_match(3)

      ESCAPES.fetch(Regexp.last_match(4)) { |character| character }
    end
  end

  # Pairs of a status and bytes. Each is answered so, and the connection is closed. RFC 9112 and RFC 9110.
  REFUSED = File.binread(FILE).scan(/^(\d+) \w+ \|(.*)\|$/n).map do |status, text|
    [status.to_i, unescape(text).sub(" / ", " #{REFUSED_PATH} ")]
  end.freeze

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
