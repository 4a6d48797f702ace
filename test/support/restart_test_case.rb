# frozen_string_literal: true

require_relative "e2e_test"
require_relative "keep_alive_load"

# A test that replaces a version of an application by another.
class RestartTestCase < E2ETest
  CONFIG = VersionedApp::CONFIG

  private

  # Starts Highball and waits until all of its workers serve.
  def serve(app, *options, workers: 1, **settings)
    server = super
    wait_for("all workers") { workers(server) == Array.new(workers, "serving") }
    server
  end

  # A folder with this version of the application, by default a new folder.
  def version(number, folder = folder_with, config = CONFIG)
    VersionedApp.write(folder, number, config)
    folder
  end

  # A server of version 0, whose application was given to it as an object.
  def serve_an_object
    script = File.join(folder_with("serve.rb" => <<~RUBY), "serve.rb")
      require "rack"
      require "highball/handler"
      Highball::Handler.run(->(_env) { [200, {}, ["0 "]] }, Host: "127.0.0.1", Port: #{free_port})
    RUBY
    lib = { "RUBYLIB" => File.join(HighballServer::ROOT, "lib") }
    serve(File.dirname(script), command: ["ruby", script], env: lib)
  end

  # Yields a server of version 1, its folder, and a connection whose request is answered at `let_go`.
  def with_a_request_in_flight
    app = version(1, folder_with, <<~RUBY)
      run lambda { |env|
        warn "started"
        sleep 0.01 until File.exist?(File.join(__dir__, "go"))
        [200, {}, ["1 "]]
      }
    RUBY
    server = serve_silently(app)
    server.connect do |connection|
      connection.send_request("POST", "/long", {}, "x")
      wait_for("begin of the request") { server.log.include?("started") }
      yield server, app, connection
    end
  end

  # A version that takes until `let_go` to boot.
  def slow(app, number)
    version(number, app, "sleep 0.01 until File.exist?(File.join(__dir__, 'go'))\n#{CONFIG}")
  end

  def let_go(app) = FileUtils.touch(File.join(app, "go"))

  # Restarts, and returns the generation that serves now.
  def restart(server)
    output = highball("restart", *server.which, within: 60)
    output[/generation (\d+) serves/, 1].to_i
  end

  # Requests a restart that fails, and returns the message.
  def restart_fails(server)
    output = highball_fails("restart", *server.which, within: 60)
    assert_match(/the previous version is still serving/, output)
    output
  end

  # Starts Highball on an application that answers nothing yet.
  def serve_silently(app)
    server = HighballServer.new(app)
    @servers << server
    wait_for("begin of serving", within: 60) { server.log.include?("serving on") }
    server
  end

  def starting?(server) = workers(server).include?("starting")

  def workers(server) = server.status["workers"].map { |worker| worker["state"] }

  def generations(server)
    server.status["workers"].select { |worker| worker["state"] == "serving" }.map { |worker| worker["generation"] }
  end

  def stage(server)
    server.status["restarts"].last&.fetch("state")
  end

  def answer(server)
    server.get("/").body.split.first
  end
end
