# frozen_string_literal: true

require_relative "http_connection"

# For tests of what an application learns of its clients, who connect from addresses of this machine.
module EnvMirror
  # It answers with the strings of its env, or raises an exception.
  APP = <<~RUBY
    require "json"
    run lambda { |env|
      raise "the secret reason" if env["PATH_INFO"] == "/raise"

      [200, { "content-type" => "application/json" }, [env.select { |_, value| value.is_a?(String) }.to_json]]
    }
  RUBY

  private

  def env_of(body)
    JSON.parse(body)
  end

  def connect_from(server, address, &block)
    HttpConnection.tcp(server.port, from: address).use(&block)
  end
end
