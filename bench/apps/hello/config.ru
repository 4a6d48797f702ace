# frozen_string_literal: true

require_relative "../heap"

# The smallest application there is: what is measured with it is the server. Rack names the header fields, as its
# middleware, which some servers put in front, looks for capital letters in them before Rack 3.
type = Rack::CONTENT_TYPE
length = Rack::CONTENT_LENGTH

run(lambda do |env|
  next HEAP.call(env) if env["PATH_INFO"] == HEAP_PATH

  [200, { type => "text/plain", length => "11" }, ["Hello World"]]
end)
