# frozen_string_literal: true

# marks: debian13

require_relative "../../support/e2e_test"

# A server that cannot start reports what failed, at which step, and what to do, and exits with an error.
class BootFailuresTest < E2ETest
  WELL = "run ->(_env) { [200, {}, []] }\n"

  def test_a_syntax_error
    app = folder_with("config.ru" => "require_relative 'app'\nrun App", "app.rb" => "class App\n  def call(env\nend\n")
    refused app, /SyntaxError/, /app\.rb:\d/, /load_app|loading the app/i
  end

  def test_a_missing_database
    blog = copy_of_example("blog")
    refused blog, /database|sqlite/i, env: { "DATABASE_URL" => "sqlite3:/proc/nowhere/blog.sqlite3" }
  end

  def test_an_exception_while_it_loads
    app = folder_with("config.ru" => "raise ArgumentError, 'no KEY was given'\n")
    refused app, /ArgumentError/, /no KEY was given/, /config\.ru:1/
  end

  # As Ruby code of another version might do.
  def test_a_mold_that_sends_invalid_messages
    lib = folder_with("highball/boot.rb" => <<~RUBY)
      require "socket"
      Socket.for_fd(Integer(ENV.fetch("HIGHBALL_CONTROL_FD"))).send('{"type":"step","step":"another"}', 0)
      sleep
    RUBY
    refused folder_with("config.ru" => WELL), /sent an invalid message/, /different versions/, /starting Ruby/,
            env: { "HIGHBALL_LIB" => lib }
  end

  def test_an_app_folder_that_does_not_exist
    refused "/no/such/folder", %r{/no/such/folder}
  end

  def test_a_file_in_place_of_a_folder
    file = File.join(folder_with("app.txt" => ""), "app.txt")
    refused file, /app\.txt/
  end

  # Root reads everything: it takes another user to fail.
  def test_an_unreadable_folder
    skip "needs root, to become another user" unless Process.uid.zero?
    app = folder_with("config.ru" => WELL)
    File.chmod(0o700, app)
    output, ended = as_nobody(app)
    refute_predicate ended, :success?
    assert_match(/#{app}/, output)
    assert_match(/permission/i, output)
  end

  def test_a_port_in_use
    TCPServer.open("127.0.0.1", 0) do |taken|
      port = taken.addr[1].to_s
      app = folder_with("config.ru" => WELL)
      output = refused(app, /#{port}/, /another program is using it/, options: ["-p", port])
      assert_operator output.lines.length, :<, 15
    end
  end

  def test_a_port_that_may_not_be_bound
    refused folder_with("config.ru" => WELL), /192\.0\.2\.1/, options: ["-b", "192.0.2.1", "-p", "0"]
  end

  def test_a_socket_that_cannot_be_made
    refused folder_with("config.ru" => WELL), %r{/no/such/folder}, options: ["-b", "unix:/no/such/folder/app.sock"]
  end

  def test_bad_options
    app = folder_with("config.ru" => WELL)
    {
      %w[--wokers 2] => /--workers/,
      %w[-w many] => /workers/,
      %w[-w 600] => /workers/,
      %w[-p 70000] => /port/,
      ["--max-body", "1 potato"] => /max-body/,
      %w[--config /no/such.toml] => %r{/no/such\.toml}
    }.each do |options, clue|
      output, ended = HighballServer.run("serve", *options, app)
      refute_predicate ended, :success?, options
      assert_match clue, output, options
    end
  end

  def test_a_bad_configuration_file
    app = folder_with("config.ru" => WELL, "highball.toml" => "workers = 2\nwokers = 3\n")
    output = refused(app, /highball\.toml/, /wokers/)
    assert_match(/workers/, output)
    refused folder_with("config.ru" => WELL, "highball.toml" => "workers = \n"), /highball\.toml/, /line 1|:1/
  end

  def test_a_bad_environment_variable
    refused folder_with("config.ru" => WELL), /WEB_CONCURRENCY/, env: { "WEB_CONCURRENCY" => "lots" }
  end

  def test_a_ruby_that_is_not_there
    refused folder_with("config.ru" => WELL), %r{/no/such/ruby}, options: ["--ruby", "/no/such/ruby"]
  end

  private

  # Serves the app, which has to fail with all these clues in its output; returns the output.
  def refused(app, *clues, options: [], env: {})
    options += ["-b", "127.0.0.1"] unless options.include?("-b")
    options += ["-p", "0"] unless options.include?("-p")
    output = highball_fails("serve", "-e", "production", *options, app, env: env)
    clues.each { |clue| assert_match clue, output }
    output
  end

  def as_nobody(app)
    # A copy, because the repository may lie where only its owner may look.
    binary = File.join(folder_with, "highball")
    FileUtils.cp(HighballServer::BINARY, binary)
    File.chmod(0o755, File.dirname(binary), binary)
    command = [binary, "serve", "-e", "production", "-b", "127.0.0.1", "-p", "0", app]
    nobody = Etc.getpwnam("nobody")
    reader, writer = IO.pipe
    pid = fork do
      Process::Sys.setgid(nobody.gid)
      Process::Sys.setuid(nobody.uid)
      exec(*command, %i[out err] => writer, in: File::NULL)
    end
    writer.close
    output = reader.read
    [output, Process.wait2(pid).last]
  end
end
