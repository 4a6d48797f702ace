# frozen_string_literal: true

require "open3"
require "socket"
require "timeout"
require_relative "../../support/e2e_test"
require "highball/attached_mold"

# An application object that is served by threads of this process, as Capybara has it for tests.
class AttachedTest < E2ETest
  def setup
    super
    @variables = HighballServer::ENVIRONMENT.to_h { |name, _| [name, ENV.fetch(name, nil)] }
    ENV.update(HighballServer::ENVIRONMENT)
  end

  def teardown
    @mold&.stop
    @serving&.join(20)
    ENV.update(@variables)
    super
  end

  def test_it_serves_what_this_process_has
    here = "before"
    serve_object { |env| [200, {}, [env["PATH_INFO"], here, Process.pid.to_s]] }
    assert_equal "/abefore#{Process.pid}", get("/a")
    here = "after"
    assert_equal "/bafter#{Process.pid}", get("/b")
  end

  def test_several_requests_at_a_time
    waiting = Queue.new
    open = Queue.new
    serve_object(threads: 3) do |_env|
      waiting << true
      [200, {}, [open.pop]]
    end
    answers = Array.new(3) { Thread.new { get("/") } }
    Timeout.timeout(20) { 3.times { waiting.pop } } # all at once, or this would not come to an end
    3.times { |n| open << n.to_s }
    assert_equal(%w[0 1 2], answers.map(&:value).sort)
  end

  def test_bodies_exceptions_and_streams
    serve_object do |env|
      case env["PATH_INFO"]
      when "/raise" then raise "on purpose"
      when "/stream" then [200, {}, Enumerator.new { |body| 3.times { |n| body << "piece #{n}\n" } }]
      else [200, {}, [env["rack.input"].read.bytesize.to_s]]
      end
    end
    body = "x" * (3 * MIB)
    assert_equal body.bytesize.to_s, connect { |connection| connection.request("POST", "/", {}, body) }.body
    assert_equal "piece 0\npiece 1\npiece 2\n", get("/stream")
    _, words = capture_subprocess_io { assert_equal(500, connect { |connection| connection.get("/raise") }.status) }
    assert_match(/RuntimeError: on purpose/, words)
  end

  def test_it_ends
    serve_object { [200, {}, ["here"]] }
    assert_equal "here", get("/")
    children = children_of(Process.pid)
    assert_equal 2, children.length, "highball, and the placeholder of a worker"
    @mold.stop
    assert @serving.join(20), "it does not end"
    assert_raises(Errno::ECONNREFUSED) { get("/") }
    wait_for("the end of both") { (children & children_of(Process.pid)).empty? }
  end

  def test_a_highball_that_dies_is_an_error
    serve_object { [200, {}, ["here"]] }
    assert_equal "here", get("/")
    binary = File.realpath(HighballServer::BINARY)
    highball = children_of(Process.pid).find { |pid| File.readlink("/proc/#{pid}/exe") == binary }
    Process.kill("KILL", highball)
    error = assert_raises(Highball::AttachedMold::Ended) { @serving.value }
    assert_match(/SIGKILL/, error.message)
    @mold = @serving = nil
  end

  def test_what_keeps_it_from_starting_is_told
    TCPServer.open("127.0.0.1", 0) do |taken|
      mold = Highball::AttachedMold.new(->(_env) { [200, {}, []] }, address(taken.addr[1]), threads: 1)
      error = assert_raises(Highball::AttachedMold::Ended) { Timeout.timeout(20) { mold.start } }
      assert_match(/#{taken.addr[1]}: another program is using it/, error.message)
    end
  end

  # Nothing of the configuration of a deployment is obeyed.
  def test_the_configuration_of_the_application_is_for_its_deployment
    folder = folder_with("config/highball.toml" => "hosts = ['example.org']\npidfile = 'pid'\nworkers = 3\n")
    Dir.chdir(folder) { serve_object { [200, {}, ["here"]] } }
    assert_equal "here", get("/")
    refute_path_exists File.join(folder, "pid")
  end

  def test_nothing_outlives_a_test_process_that_is_killed
    script = <<~RUBY
      require "highball/attached_mold"
      app = ->(_env) { [200, {}, ["here"]] }
      mold = Highball::AttachedMold.new(app, #{address(@port = free_port)}, threads: 1)
      mold.start
    RUBY
    pid = Process.spawn("ruby", "-I", File.join(HighballServer::ROOT, "lib"), "-e", script, in: File::NULL)
    wait_for("an answer", within: 30) { answers? }
    family = ProcessFacts.tree(pid)
    assert_operator family.length, :>=, 3
    Process.kill("KILL", pid)
    Process.wait(pid)
    wait_for("the end of all") { family.none? { |one| ProcessFacts.alive?(one) } }
  end

  private

  def serve_object(threads: 2, &app)
    @port = free_port
    @mold = Highball::AttachedMold.new(app, address(@port), threads: threads)
    @serving = Thread.new { @mold.start }
    @serving.report_on_exception = false
    wait_for("highball", within: 30) { connects? }
  end

  def address(port) = ["--bind", "127.0.0.1", "--port", port.to_s, "--environment", "test"]
  def get(target) = connect { |connection| connection.get(target) }.body

  def connect(&block) = HttpConnection.tcp(@port).use(&block)

  def connects?
    TCPSocket.new("127.0.0.1", @port).close
    true
  rescue Errno::ECONNREFUSED
    @serving&.join(0) # raises what has ended it
    false
  end

  def answers?
    get("/") == "here"
  rescue SystemCallError, EOFError
    false
  end

  def children_of(pid) = ProcessFacts.parents.select { |_, parent| parent == pid }.map(&:first)
end
