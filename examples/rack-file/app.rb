# frozen_string_literal: true

# A Rack application is any object that responds to `call`. This one answers with the request's method and path.
class App
  def call(env)
    [200, { "content-type" => "text/plain" }, ["Rack in a file: #{env['REQUEST_METHOD']} #{env['PATH_INFO']}\n"]]
  end
end
