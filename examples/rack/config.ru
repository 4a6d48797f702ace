# frozen_string_literal: true

# The smallest Rack application; the benchmarks serve it as it stands.
HELLO = ["Hello, world!\n"].freeze
HEADERS = { "content-type" => "text/plain", "content-length" => HELLO.first.bytesize.to_s }.freeze

run ->(_env) { [200, HEADERS.dup, HELLO] }
