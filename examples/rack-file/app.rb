# frozen_string_literal: true

# A Rack application is anything that answers to `call`. This one counts the ways to ask.
class App
  def call(env)
    [200, { "content-type" => "text/plain" }, ["Rack in a file: #{env['REQUEST_METHOD']} #{env['PATH_INFO']}\n"]]
  end
end
