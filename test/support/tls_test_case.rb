# frozen_string_literal: true

require_relative "e2e_test"
require_relative "serves_tls"

# A test of servers with an address for HTTPS, on which a test authority's certificates are served.
class TlsTestCase < E2ETest
  include ServesTls

  ENV_APP = <<~RUBY
    require "json"
    run lambda { |env|
      text = env.select { |_, value| value.is_a?(String) }.to_json
      [200, { "content-type" => "application/json" }, [text]]
    }
  RUBY
end
