# frozen_string_literal: true

# The smallest application that knows HEAD: not every server leaves the body out.
type = Rack::CONTENT_TYPE
length = Rack::CONTENT_LENGTH

use Rack::Head
run ->(_env) { [200, { type => "text/plain", length => "11" }, ["Hello World"]] }
