# frozen_string_literal: true

# marks: debian13

require "uri"
require_relative "../../support/e2e_test"

# Rack::Lint checks the server's envs and the answers of the example apps, while 25 clients send requests.
class LintTest < E2ETest
  CLIENTS = 25
  ROUNDS = 4

  def test_rack
    ask(linted("rack"), "/" => 200, "/anything?a=b" => 200)
  end

  def test_sinatra
    server = linted("sinatra", workers: 1) # its entries live in the memory of one process
    posted = server.request("POST", "/entries", { "Content-Type" => "application/x-www-form-urlencoded" }, "text=hello")
    assert_equal 303, posted.status
    ask(server, "/" => 200, "/entries.json" => 200, "/missing" => 404)
    assert_includes server.get("/").body, "<li>hello</li>"
  end

  def test_streaming
    long
    ask(linted("streaming"), "/clock?ticks=1" => 200, "/download?mib=1" => 200, "/stream" => 200, "/missing" => 404)
  end

  def test_blog
    server = linted(copy_of_example("blog"))
    create_post(server)
    ask(server, "/" => 200, "/posts/1" => 200, "/posts/new" => 200, "/echo" => 200, "/posts/99" => 404)
    assert_includes server.get("/posts/1").body, "Night train"
  end

  private

  # Serves an example inside Rack::Lint.
  def linted(example, workers: 2)
    example = File.expand_path(example, HighballServer::EXAMPLES)
    # Rack::Lint 2.2 asks for URI, and does not load it.
    wrapper = folder_with("config.ru" => <<~RUBY)
      require "uri"
      app = Dir.chdir(#{example.dump}) { Array(Rack::Builder.parse_file(#{"#{example}/config.ru".dump})).first }
      run Rack::Lint.new(app)
    RUBY
    serve(wrapper, workers: workers)
  end

  def ask(server, expected)
    concurrently(CLIENTS) do
      server.connect do |connection|
        ROUNDS.times { expected.each { |target, status| assert_equal status, connection.get(target).status, target } }
      end
    end
    refute_includes server.log, "LintError"
  end

  # Posts the form as a browser does, with its token and the session's cookie.
  def create_post(server)
    form = server.get("/posts/new")
    token = form.body[/<form.*?name="authenticity_token" value="([^"]+)"/m, 1]
    fields = { "authenticity_token" => token, "post[title]" => "Night train", "post[body]" => "On time." }
    headers = { "Content-Type" => "application/x-www-form-urlencoded", "Cookie" => form["set-cookie"][/[^;]+/] }
    assert_equal 302, server.request("POST", "/posts", headers, URI.encode_www_form(fields)).status, server.log
  end
end
