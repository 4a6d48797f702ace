# frozen_string_literal: true

require "minitest/autorun"
require "digest/sha2"
require "rack"
require_relative "free_port"
require_relative "highball_server"

# A test that drives the real binary. Servers that it starts are ended with it; if one leaves processes
# behind, or has to be killed, the test fails. The logs of the servers follow a failure.
class E2ETest < Minitest::Test
  include FreePort

  MIB = 1024 * 1024

  def setup
    @servers = []
    @folders = []
  end

  def teardown
    problems = @servers.filter_map { |server| finish(server) }
    @folders.each { |folder| FileUtils.rm_rf(folder) }
    flunk problems.join("\n") unless problems.empty?
  end

  # Starts Highball on an app (a folder of test/apps or examples, or a path) and waits until it serves.
  #
  # complete:: whether to wait also until the first worker of a large application is replaced, and all serve.
  def serve(app, *options, complete: false, **settings)
    server = HighballServer.start(app, *options, **settings)
    @servers << server
    wait_for("the workers that stay") { server.complete? } if complete
    server
  end

  # A folder that is gone after the test, holding these files: {"config.ru" => "run ..."}.
  def folder_with(files = {})
    folder = Dir.mktmpdir("highball-app")
    @folders << folder
    files.each do |name, content|
      path = File.join(folder, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.binwrite(path, content)
    end
    folder
  end

  # A copy of an example without its data: tests neither read nor change the data of developers.
  def copy_of_example(name)
    source = File.join(HighballServer::EXAMPLES, name)
    folder = folder_with
    parts = Dir.children(source) - %w[storage tmp log]
    parts.each { |part| FileUtils.cp_r(File.join(source, part), folder) }
    FileUtils.rm(Dir.glob(File.join(folder, "db/*.sqlite3*")))
    folder
  end

  # What `highball` prints when this command for this server succeeds.
  def command_output(server, *command) = highball(*command, *server.which, within: 60)

  # Runs a command of the binary, which succeeds. Returns its output.
  def highball(...)
    output, ended = HighballServer.run(...)
    assert_predicate ended, :success?, output
    output
  end

  # The same of a command that fails.
  def highball_fails(...)
    output, ended = HighballServer.run(...)
    refute_predicate ended, :success?, output
    output
  end

  def wait_for(what, within: Deadline::WITHIN, &condition)
    Deadline.wait(what, within: within, &condition)
  end

  # Closes a connection as a machine does that has left: the other end sees a reset.
  def reset_connection(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    socket.close
  end

  # SIGSTOP reaches the threads of a process one after another: until the last one stands still, one may begin a
  # request.
  def stop_processes(pids)
    pids.each { |pid| HighballServer.kill(pid, "STOP") }
    wait_for("all their threads to stand still") { pids.all? { |pid| ProcessFacts.stopped?(pid) } }
  end

  # The extent of the tests: `quick`, `default` or `full` (see bin/test).
  LEVEL = ENV.fetch("HIGHBALL_TEST_LEVEL", "default")

  # Leaves a long test out of `bin/test --quick`.
  def long
    skip "takes long: bin/test" if LEVEL == "quick"
  end

  # Leaves a very long test to `bin/test --full`.
  def very_long
    skip "takes very long: bin/test --full" unless LEVEL == "full"
  end

  # Skips a test where this program is not installed; `package`: what has it.
  def needs(program, package = program)
    skip "#{program} is not installed (#{package})" unless installed?(program)
  end

  def installed?(program)
    [*ENV["PATH"].split(":"), "/usr/sbin"].any? { |folder| File.executable?(File.join(folder, program)) }
  end

  # Runs the block in as many threads, and returns what each returned; raises what one raised.
  def concurrently(count)
    threads = Array.new(count) { |index| Thread.new { yield index } }
    threads.each { |thread| thread.report_on_exception = false }
    threads.map(&:value)
  end

  # The block's value `count` times in a row, as seconds: sorted.
  def timings(count)
    Array.new(count) do
      began = Deadline.now
      yield
      Deadline.now - began
    end.sort
  end

  def percentile(sorted, share)
    sorted[((sorted.length - 1) * share).round]
  end

  private

  # The problem at the end of this server, or nil. Prints its log if the test has failed.
  def finish(server)
    warn "\n--- log of highball in #{name}\n#{server.log}---" unless passed? || skipped?
    orphans = server.finish
    "processes #{orphans.join(', ')} outlived their server" unless orphans.empty?
  rescue Deadline::Missed => e
    e.message
  end
end
