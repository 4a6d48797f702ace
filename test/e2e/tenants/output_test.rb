# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Output and messages of other users' applications, on their way to the log of a server that root started.
class TenantOutputTest < TenantsTestCase
  SERVING = %r{serving on http://127\.0\.0\.1:(\d+)}

  # Prints what the request asks for, and answers with the result.
  PRINTER = <<~'RUBY'
    require "json"
    TRY = lambda do |&act|
      act.call
    rescue SystemCallError, IOError => e
      e.class.name
    end
    run lambda { |env|
      found = TRY.call { eval(env["rack.input"].read) }
      [200, {}, [JSON.generate(found)]]
    }
  RUBY

  # This process's control socket.
  CONTROL = "ObjectSpace.each_object(Highball::ControlSocket).map(&:to_io).reject(&:closed?).last"

  def setup
    super
    @server = nil
  end

  def test_a_line_has_the_name_of_its_application
    serve_printers
    run_in_attacker('$stdout.puts "to stdout"; $stderr.puts "to stderr"; system("echo from a child"); nil')
    wait_for_lines("attacker | to stdout", "attacker | to stderr", "attacker | from a child")
    run_in(VICTIM, '$stdout.puts "mine"; nil')
    wait_for_lines("victim | mine")
  end

  def test_a_line_cannot_be_forged
    serve_printers
    forged = "2026-01-01T00:00:00.000Z ERROR victim: is hacked"
    run_in_attacker("$stderr.write(\"x\\r#{forged}\\n#{forged}\\n\\e[1A\\e[2K#{forged}\\u2028#{forged}\\n\"); nil")
    wait_for_lines("attacker | x\\r#{forged}", "attacker | #{forged}",
                   "attacker | \\x1b[1A\\x1b[2K#{forged}\\u{2028}#{forged}")
    assert_empty(log_lines.grep(/\A2026-01-01/))
    refute_includes @server.log, "\e"
  end

  def test_nothing_but_text_comes_into_the_log
    serve_printers
    bytes = "\xff\xfe\0\x9b31m".b + "\u202eabc\x7f\n".b
    run_in_attacker("$stderr.binmode.write(#{bytes.bytes}.pack('C*')); nil")
    wait_for("the line") { log_lines.any? { |line| line.include?("\\u{202e}abc\\x7f") } }
    line = log_lines.find { |one| one.include?("\\u{202e}abc\\x7f") }
    assert_match(/\Aattacker \| [[:print:]\t]+\z/, line)
  end

  def test_a_line_without_an_end_is_cut
    serve_printers
    run_in_attacker('$stderr.write("y" * 3_000_000, "\n", "after\n"); nil')
    wait_for_lines("attacker | after")
    long = log_lines.grep(/yyy/)
    assert_equal ["attacker | #{'y' * 8192} [cut after 8 KiB]"], long
  end

  def test_the_beginning_of_a_line_is_there_soon
    serve_printers
    run_in_attacker('$stdout.write("no end"); $stdout.flush; nil')
    wait_for_lines("attacker | no end")
  end

  # With the server's own descriptor, the tenant could do everything that root can do with the log.
  def test_the_log_of_the_server_is_out_of_reach
    serve_printers
    before = log_lines.length
    tried = run_in_attacker(<<~'RUBY')
      require "fcntl"
      (0..2).map do |fd|
        io = File.for_fd(fd, autoclose: false)
        [TRY.call { io.truncate(0) }, TRY.call { io.seek(0) }, TRY.call { io.pwrite("forged\n", 0) },
         TRY.call { File.open("/proc/self/fd/#{fd}", "r+") { |file| file.truncate(0) } }, io.stat.ftype,
         File.readlink("/proc/self/fd/#{fd}")]
      end
    RUBY
    assert_equal "/dev/null", tried.first.last
    tried.drop(1).each do |*refused, type, path|
      assert_empty refused - %w[Errno::EINVAL Errno::ESPIPE]
      assert_equal "fifo", type
      assert_match(/\Apipe:/, path)
    end
    assert_operator log_lines.length, :>=, before
  end

  # File status flags belong to the open file: changes to a shared one would affect the server.
  def test_flags_of_the_output_are_its_own
    serve_printers
    before = flags(@server.pid, 2)
    run_in_attacker(<<~'RUBY')
      require "fcntl"
      [1, 2].each { |fd| IO.for_fd(fd, autoclose: false).fcntl(Fcntl::F_SETFL, File::NONBLOCK) }
    RUBY
    assert_equal before, flags(@server.pid, 2)
    victims = @server.full_status["apps"].find { |app| app["name"] == "victim" }
    assert_equal 0, flags(victims.dig("mold", "pid"), 1) & File::NONBLOCK
    restart_attacker
    now = @server.full_status["apps"].find { |app| app["name"] == "attacker" }
    assert_equal 0, flags(now.dig("mold", "pid"), 1) & File::NONBLOCK, "nor do they last"
  end

  def test_dev_stdout_is_there
    serve_printers
    run_in_attacker('File.write("/dev/stdout", "by its path\n"); File.write("/proc/self/fd/2", "by its number\n"); nil')
    wait_for_lines("attacker | by its path", "attacker | by its number")
  end

  def test_a_flood_is_dropped_and_counted_and_holds_nothing_up
    serve_printers(entries: { ATTACKER => "max_output = '64K'" })
    run_in_attacker('Thread.new { loop { $stderr.write("flood " * 20 + "\n") } }; nil')
    wait_for("the notice", within: 30) { @server.log.scan("dropped lines").length >= 2 }
    run_in(VICTIM, '$stdout.puts "is heard"; nil')
    wait_for_lines("victim | is heard")
    assert_victim_answers
    @server.stop("TERM")
    notices = log_lines.grep(/attacker: the application prints too much: Highball dropped lines lines=\d+ bytes=\d+/)
    refute_empty notices
    seconds = notices.map { |line| line[/T(\d\d:\d\d:\d\d\.\d)/, 1] }
    assert_equal seconds.uniq, seconds
  end

  def test_a_log_that_is_not_read_does_not_stop_an_application
    reader, writer = IO.pipe
    configure_tenants(printer_of_attacker, printer_of_victim)
    through = ["sh", "-c", 'exec "$@" 2>&7 7>&-', "sh"]
    @server = start_many(@place, env: root_env, through: through, fds: { 7 => writer })
    writer.close
    port = port_said_in(reader)
    # More than all pipes and buffers on the way hold.
    body = '$stderr.write(("z" * 1023 + "\n") * 4096); "printed"'
    answer = HttpConnection.tcp(port).request("POST", "/", { "Host" => HOSTS[ATTACKER] }, body, within: 60)
    assert_equal "printed", JSON.parse(answer.body)
  ensure
    Thread.new { reader.read } # so that it can end
  end

  def test_json_has_one_object_in_each_line
    serve_printers(top: "log_format = 'json'")
    run_in_attacker('$stderr.puts %({"level":"error","message":"forged","application":"victim"}); nil')
    wait_for("the line") { log_lines.any? { |line| line.include?("forged") } }
    lines = log_lines.map { |line| JSON.parse(line) }
    line = lines.find { |one| one["message"].include?("forged") }
    assert_equal %w[attacker output info], line.values_at("application", "stream", "level")
  end

  def test_output_of_a_boot_is_above_its_diagnosis
    broken = "warn 'the last words'\n$stderr.write('without an end')\nexit!(7)\n"
    configure_tenants(attacker_app("config.ru" => broken), printer_of_victim)
    @server = serve_as_root(@place)
    wait_for("the diagnosis") { @server.log.include?("did not boot") }
    lines = log_lines
    places = [/\Aattacker \| the last words/, /\Aattacker \| without an end/, /ERROR attacker: .*did not boot/]
    found = places.map { |pattern| lines.index { |line| line.match?(pattern) } }
    assert_equal found.compact.sort, found
    output, = HighballServer.run("doctor", "-e", "production", "-p", "0", File.join(@place, "attacker"),
                                 env: env, within: 60)
    assert_operator output.index("attacker | the last words"), :<, output.index("FAILED")
  end

  # The same text as a message over the control socket, which the server trusts as coming from a worker.
  def test_messages_cannot_flood_the_log
    serve_printers
    run_in_attacker("control = #{CONTROL}\nThread.new { loop { control.syswrite('{\"type\":\"promoted\"}') } }; nil")
    wait_for("the complaint") { @server.log.include?("an unexpected message about its promotion") }
    run_in(VICTIM, '$stdout.puts "one"; nil')
    wait_for_lines("victim | one")
    wait_for("their count", within: 30) { @server.log.include?("some were not logged") }
    assert_victim_answers
    assert_operator @server.log.bytesize, :<, 200_000
    @server.stop("TERM")
  end

  def test_messages_cannot_forge_lines
    forged = "2026-01-01T00:00:00.000Z ERROR victim: is hacked"
    loud = <<~RUBY
      text = "x\\n#{forged}\\n\\e[2J"
      #{CONTROL}.syswrite(JSON.generate("type" => "warning", "warning" => text, "remedy" => text))
      #{PRINTER}
    RUBY
    configure_tenants(attacker_app("config.ru" => "require 'json'\n#{loud}"), printer_of_victim)
    @server = serve_as_root(@place)
    wait_for("the warning") { log_lines.any? { |line| line.match?(/WARN  attacker: x\z/) } }
    assert_empty(log_lines.grep(/\A2026-01-01|\e/))
  end

  # A debugger needs the terminal from which the server was started.
  def test_only_the_same_user_gets_the_terminal
    folder = folder_with("config.ru" => PRINTER)
    @server = serve(folder)
    answer = @server.request("POST", "/", {}, '(0..2).map { |fd| File.readlink(format("/proc/self/fd/%d", fd)) }')
    own = [0, 1, 2].map { |fd| File.readlink("/proc/#{@server.pid}/fd/#{fd}") }
    assert_equal own, JSON.parse(answer.body)
  end

  private

  def printer_of_attacker = attacker_app("config.ru" => PRINTER)
  def printer_of_victim = victim_app("config.ru" => PRINTER)

  def serve_printers(**settings)
    @server = serve_tenants(printer_of_attacker, printer_of_victim, **settings)
  end

  def run_in_attacker(ruby) = run_in(ATTACKER, ruby)

  def run_in(user, ruby)
    answer = @server.request("POST", "/", { "Host" => HOSTS.fetch(user) }, ruby)
    assert_equal 200, answer.status, answer.body
    JSON.parse(answer.body)
  end

  def assert_victim_answers
    assert_equal 2, run_in(VICTIM, "1 + 1")
  end

  def restart_attacker
    highball("restart", "attacker", *@server.which, env: root_env, within: 60)
  end

  def port_said_in(reader)
    log = +""
    wait_for("the server", within: HighballServer::SERVES_WITHIN) do
      log << reader.read_nonblock(4096, exception: false).to_s.delete_prefix("wait_readable")
      log.match?(SERVING)
    end
    log[SERVING, 1].to_i
  end

  def log_lines = @server.log.lines(chomp: true)

  def wait_for_lines(*lines)
    wait_for("#{lines} in the log") { (lines - log_lines).empty? }
  end

  def flags(pid, descriptor) = File.read("/proc/#{pid}/fdinfo/#{descriptor}")[/flags:\s*(\d+)/, 1].oct
end
