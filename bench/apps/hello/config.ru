# frozen_string_literal: true

# The smallest application there is: what is measured with it is the server.
run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "11" }, ["Hello World"]] }
