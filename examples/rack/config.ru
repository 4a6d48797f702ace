# frozen_string_literal: true

# The smallest Rack application: one constant answer.
run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "11" }, ["Hello World"]] }
