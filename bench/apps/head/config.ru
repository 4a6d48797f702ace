# frozen_string_literal: true

# The smallest application that knows HEAD: not every server leaves the body out by itself.
use Rack::Head
run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "11" }, ["Hello World"]] }
