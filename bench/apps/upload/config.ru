# frozen_string_literal: true

# Reads what it is sent, and answers how many bytes that were.
CHUNK_BYTES = 64 * 1024

type = Rack::CONTENT_TYPE
length = Rack::CONTENT_LENGTH

run(lambda do |env|
  bytes = 0
  chunk = String.new(capacity: CHUNK_BYTES)
  bytes += chunk.bytesize while env["rack.input"].read(CHUNK_BYTES, chunk)
  answer = bytes.to_s
  [200, { type => "text/plain", length => answer.bytesize.to_s }, [answer]]
end)
