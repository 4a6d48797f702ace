# frozen_string_literal: true

require "pty"
require_relative "../support/bundled_blog"
require_relative "../support/e2e_test"

# A developer who stops an action in the terminal and looks about, as under other servers.
class DebuggerTest < E2ETest
  include BundledBlog

  HIGHBALL = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0"].freeze

  # A server in a pseudo-terminal, and the keyboard of its developer.
  class Terminal
    WITHIN = 60
    # It answers no questions about its cursor, which editors of lines ask.
    IRBRC = "%i[USE_MULTILINE USE_SINGLELINE USE_READLINE].each { |name| IRB.conf[name] = false }\n"

    attr_reader :screen, :pid

    def initialize(folder, *command)
      File.write(irbrc = File.join(folder, "irbrc"), IRBRC)
      environment = HighballServer::ENVIRONMENT.merge(BundledBlog::ENVIRONMENT, "TERM" => "dumb", "IRBRC" => irbrc)
      @screen = +""
      @output, @input, @pid = PTY.spawn(environment, *command, chdir: folder)
      @reader = Thread.new { read }
    end

    def type(line) = @input.puts(line)
    def ctrl_c = @input.write("\x03")

    # Waits until this is to be seen behind what was seen before: what it matches.
    def see(pattern)
      from = @seen || 0
      Deadline.wait("#{pattern.inspect} in the terminal:\n#{screen}", within: WITHIN) do
        found = pattern.match(screen, from)
        @seen = found.end(0) if found
        found
      end
    end

    def wait
      _, status = Process.wait2(@pid)
      @pid = nil
      status
    end

    def finish
      @input.close
      HighballServer.kill(@pid, "KILL") if @pid
      @reader.join(5)
    end

    private

    def read
      loop { @screen << @output.readpartial(4096).force_encoding("UTF-8").scrub.delete("\r") }
    rescue EOFError, Errno::EIO
      nil # the terminal has been closed
    end
  end

  def teardown
    @terminal&.finish
    super
  end

  def test_irb_in_an_action_under_highball
    debug_in(blog_that_stops("binding.irb"), *HIGHBALL, leave: "exit")
  end

  def test_irb_in_an_action_under_rails_server
    debug_in(bundled_blog_that_stops("binding.irb"), "ruby", "bin/rails", "server", "-b", "127.0.0.1", "-p", "0",
             leave: "exit")
  end

  def test_byebug_in_an_action_under_highball
    skip "byebug is not installed" if Gem::Specification.stubs_for("byebug").empty?
    debug_in(blog_that_stops("require 'byebug'; byebug"), *HIGHBALL, leave: "continue")
  end

  private

  def blog_that_stops(line, blog = copy_of_example("blog"))
    routes = File.join(blog, "config/routes.rb")
    File.write(routes, File.read(routes).sub(/\.draw do\n/, "\\0  get 'stop', to: 'posts#stop'\n"))
    controller = File.join(blog, "app/controllers/posts_controller.rb")
    action = "def stop\n    answer = params[:number].to_i\n    #{line}\n    render plain: \"now \#{answer}\"\n  end\n"
    File.write(controller, File.read(controller).sub(/class .*\n/, "\\0  #{action}"))
    blog
  end

  def bundled_blog_that_stops(line) = blog_that_stops(line, bundled_blog)

  # Stops in the action, looks at a variable, changes it, goes on, and ends the server by Ctrl-C.
  def debug_in(blog, *command, leave:)
    @terminal = Terminal.new(blog, *command)
    port = @terminal.see(%r{http://127\.0\.0\.1:([1-9]\d*)})[1].to_i
    answer = Thread.new { get(port, "/stop?number=41") }
    @terminal.see(/posts_controller\.rb/)
    @terminal.type "[:now, answer + 1].inspect"
    @terminal.see(/:now, 42/)
    @terminal.type "answer = 1234"
    @terminal.type leave
    assert_equal "now 1234", answer.value
    @terminal.ctrl_c
    assert_predicate @terminal.wait, :success?, @terminal.screen
  end

  def get(port, target)
    connection = HttpConnection.tcp(port)
    connection.get(target, { "Host" => "127.0.0.1" }, within: Terminal::WITHIN).body
  ensure
    connection&.close
  end
end
