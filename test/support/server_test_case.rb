# frozen_string_literal: true

require "minitest/autorun"
require "json"
require "rack"
require "stringio"
require "timeout"
require_relative "fake_front"
require "highball/server"

# A test of serving: real threads, a real ring, and a front that is played by the test.
class ServerTestCase < Minitest::Test
  OK = [200, {}, ["ok"]].freeze

  def setup
    @log = StringIO.new
    @servers = []
  end

  def teardown
    @servers.each(&:stop)
    wait_for("end of the serving threads") do
      @front&.cancel_all
      @servers.flat_map(&:threads).none? { |thread| thread&.alive? }
    end
  end

  # Serves the app: a block that is given the env.
  def serve(threads: 1, response_bytes: 64 * 1024, development: false, sendfile: nil, &app)
    @front = FakeFront.new(threads: threads, response_bytes: response_bytes)
    log = Highball::Log.new(out: @log, worker: 1)
    @server = Highball::Server.new(app, @front.ring, log: log, development: development,
                                                     sendfile: sendfile)
    @servers << @server
    @server.start
  end

  # Serves by path: procs that are given the env; other paths are answered with "ok".
  def serve_paths(paths = {}, **options)
    serve(**options) { |env| paths.fetch(env["PATH_INFO"], ->(_env) { OK }).call(env) }
  end

  def place(...) = @front.place(...)
  def threads = @server.threads

  # The whole answer to a request.
  def answer_to(placed) = @front.answer_to(placed)
  def ask(...) = answer_to(place(...))

  def get(path) = ask({ "PATH_INFO" => path })
  def assert_serves = assert_equal("ok", get("/fine").body)

  # The answer to a request, for an app that returns this response to all requests.
  def answer_of(*response)
    serve { response }
    ask
  end

  def log = @log.string

  # Waits for a condition, and wakes the server's threads meanwhile.
  def wait_for(what, within: 10)
    Deadline.wait(what, within: within) do
      @front&.wake
      yield
    end
  end
end
