# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/own_mounts"

# A disk that is full under what Highball writes beside spool files: it serves on, says what it cannot write, and no
# line is mixed with another one once there is room again.
class FullDisksTest < E2ETest
  include OwnMounts

  APP = "run ->(_env) { [200, {}, ['ok']] }\n"
  # What is left when the disk is full: less than a line.
  ROOM = 10 # bytes
  PAGE = 4096
  LOGS = %w[log access.log].freeze

  def test_logs
    serve_on_disk
    wait_for("a line of each log") { LOGS.all? { |name| size(name).positive? } }
    fill
    get("/lost")
    wait_for("the problem") { problem.to_s.include?("access.log cannot be written: No space left on device") }
    3.times { |number| get("/lost/#{number}") }
    File.delete(disk("fill"))
    wait_for("the end of the problem") { get("/after") && problem.nil? }
    @server.signal("HUP")
    assert_operator line("log", /dropped lines: standard error was full/)["lines"], :>=, 1
    assert_equal 200, line("access.log", %r{/after})["status"]
    # The line that fills the page, and the line that was cut off.
    LOGS.each { |name| assert_equal(2, lines(name).count { |line| !json?(line) }, name) }
  end

  def test_init_leaves_no_part_of_a_file
    disk = folder_with
    script = "mount -t tmpfs -o size=64k none $0 && cd $0 && touch config.ru && mkdir config && " \
             "{ head -c 1m /dev/zero > fill; \"$@\"; rm fill; find . -size 0 -name '*.toml'; \"$@\"; }"
    command = [*ALONE, "sh", "-c", script, disk, HighballServer::BINARY, "init"]
    output, = Open3.capture2e(HighballServer::ENVIRONMENT, *command)
    assert_match(%r{cannot write .*config/highball.toml: No space left on device}, output)
    refute_match(%r{^\./config/highball.toml}, output)
    assert_match(%r{^wrote +config/highball.toml}, output)
  end

  private

  # Serves with both logs on a separate disk.
  def serve_on_disk
    @disk = folder_with
    socket = File.join(folder_with, "socket")
    script = "mount -t tmpfs -o mode=755,size=1m none $0 && exec \"$@\" 2>> $0/log"
    options = ["--log-format", "json", "--access-log", File.join(@disk, "access.log"), "--access-log-format", "json"]
    command = [*ALONE, "sh", "-c", script, @disk, HighballServer::BINARY, "serve", "-b", "unix:#{socket}", "-e",
               "production", "-w", "1", "-t", "1", *options]
    app = folder_with("config.ru" => APP)
    @server = serve(app, bind: socket, command: [*command, app])
  end

  # A file on that disk, from outside of its namespace.
  def disk(name) = "/proc/#{@server.pid}/root#{@disk}/#{name}"
  def size(name) = File.size(disk(name))
  def lines(name) = File.read(disk(name)).lines(chomp: true)

  # What the first line that matches says, once it is there.
  def line(name, pattern)
    JSON.parse(wait_for("the line in #{name}") { lines(name).grep(pattern).first })
  end

  def problem = @server.full_status["log_problem"]

  def get(path)
    assert_equal 200, @server.get(path).status
  end

  # Fills the disk, and leaves both logs a little room in their last page.
  def fill
    File.open(disk("fill"), "wb") { |file| loop { file.syswrite("x" * PAGE) } }
  rescue Errno::ENOSPC
    LOGS.each do |name|
      used = (size(name) + ROOM) % PAGE
      File.open(disk(name), "ab") { |file| file.syswrite("#{'x' * (PAGE - used - 1)}\n") }
    end
  end

  def json?(line)
    JSON.parse(line)
  rescue JSON::ParserError
    false
  end
end
