# frozen_string_literal: true

require_relative "../../support/bundled_blog"
require_relative "../../support/changed_blog"
require_relative "../../support/e2e_test"
require_relative "../../support/terminal"

# A developer who stops an action in the terminal and looks about, as under other servers.
class DebuggerTest < E2ETest
  include BundledBlog
  include ChangedBlog

  RAILS_SERVER = %w[ruby bin/rails server -b 127.0.0.1 -p 0].freeze
  HIGHBALL = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0"].freeze

  def teardown
    @terminal&.finish
    super
  end

  def test_irb_in_an_action_under_highball
    debug_in(blog_that_stops("binding.irb"), *HIGHBALL, leave: "exit")
  end

  def test_irb_in_an_action_under_rails_server
    debug_in(blog_that_stops("binding.irb", bundled_blog), *RAILS_SERVER, leave: "exit")
  end

  def test_byebug_in_an_action_under_highball
    skip "byebug is not installed" if Gem::Specification.stubs_for("byebug").empty?
    debug_in(blog_that_stops("require 'byebug'; byebug"), *HIGHBALL, leave: "continue")
  end

  # As Rails' Gemfile has it: nothing of it is loaded until then.
  def test_debug_in_an_action_under_rails_server
    skip "debug is not installed" if Gem::Specification.stubs_for("debug").empty?
    blog = blog_that_stops("debugger", bundled_blog("gem \"debug\", require: \"debug/prelude\"\n"))
    debug_in(blog, *RAILS_SERVER, leave: "continue")
  end

  private

  def blog_that_stops(line, blog = copy_of_example("blog"))
    action = "  def stop\n    answer = params[:number].to_i\n    #{line}\n    render plain: \"now \#{answer}\"\n  end\n"
    insert(blog, "config/routes.rb", "  get 'stop', to: 'posts#stop'\n")
    insert(blog, "app/controllers/posts_controller.rb", action, after: /class .*\n/)
    blog
  end

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
    HttpConnection.tcp(port).use do |connection|
      connection.get(target, { "Host" => "127.0.0.1" }, within: Terminal::WITHIN).body
    end
  end
end
