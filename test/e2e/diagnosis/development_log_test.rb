# frozen_string_literal: true

# marks: long

require_relative "../../support/bundled_blog"
require_relative "../../support/changed_blog"
require_relative "../../support/e2e_test"

# What a developer sees in the terminal: each request once, in order, and whatever went wrong.
class DevelopmentLogTest < E2ETest
  include BundledBlog
  include ChangedBlog

  # A line of Highball's access log, of a request that reached an action or a file.
  ACCESS = %r{^127\.0\.0\.1 - - \[.*\] "GET (\S+) HTTP/1\.1" (?:200|500)}
  # Rails' lines, without their tags and colours.
  OF_RAILS = /(Started|Processing|Completed) (?:GET "(\S+)"|by \S+|\d+)/

  def test_rails_by_highball
    assert_rails_log serve(failing_blog, environment: "development")
  end

  def test_rails_by_rails_server
    assert_rails_log rails_server(failing_blog(bundled_blog), "-b", "127.0.0.1", "-p", "0")
  end

  def test_rails_after_a_restart
    server = serve(failing_blog, environment: "development")
    assert_equal 200, browse(server).status
    FileUtils.mkdir_p(File.join(server.app, "tmp"))
    FileUtils.touch(File.join(server.app, "tmp/restart.txt"))
    wait_for("the restart", within: 60) { server.status.fetch("generation") == 2 && server.settled? }
    assert_equal 200, browse(server, "/posts/new").status
    wait_for("the log") { server.log.include?("Started GET \"/posts/new\"") }
    assert_empty server.log.scan(ACCESS)
  end

  # It gets no second logger for the terminal.
  def test_a_rails_application_that_logs_to_the_terminal_itself
    blog = copy_of_example("blog")
    insert(blog, "config/environments/development.rb", "  config.logger = ActiveSupport::Logger.new($stdout)\n")
    server = serve(blog, environment: "development")
    browse(server, "/?once")
    wait_for("the log") { server.log.include?("Completed 200") }
    assert_equal 1, server.log.scan("Started GET \"/?once\"").length
    assert_empty server.log.scan(ACCESS)
  end

  def test_rails_in_other_environments
    server = serve(copy_of_example("blog"))
    server.get("/")
    server.get("/posts/999")
    server.stop
    refute_match(OF_RAILS, server.log)
    server = rails_server(bundled_blog, "-b", "127.0.0.1", "-p", "0", "--no-log-to-stdout")
    browse(server)
    wait_for("the access log") { server.log.match?(ACCESS) }
    refute_match(OF_RAILS, server.log)
  end

  def test_sinatra_which_logs_requests_itself
    server = serve("sinatra-classic", environment: "development")
    server.get("/winds/north")
    server.get("/winds/up")
    wait_for("the log") { server.log.include?("GET /winds/up") }
    server.stop
    assert_equal(%w[north up], server.log.scan(%r{"GET /winds/(\w+) }).flatten.sort)
  end

  def test_rack_with_its_own_log_or_another
    { "" => [0, 1], "use Rack::CommonLogger" => [1, 0], "use Rack::CommonLogger, Logger.new($stdout)" => [1, 0],
      "use Rack::CommonLogger, File.open(File::NULL, 'w')" => [0, 1] }.each do |line, expected|
      app = "->(env) { env['PATH_INFO'] == '/raise' ? raise('boom') : [200, {}, []] }"
      config = "require 'logger'\n#{line}\nrun #{app}\n"
      server = serve(folder_with("config.ru" => config), environment: "development", ready: "/ready")
      server.get("/asked")
      server.get("/raise") # which Rack::CommonLogger does not log
      server.stop
      both = server.log.lines.grep(%r{"GET /asked }).partition { |logged| logged.match?(/ \d\.\d{4} ?\n/) }
      assert_equal expected, both.map(&:length), line
      assert_equal 1, server.log.scan(%r{"GET /raise HTTP/1\.1" 500}).length, line
      assert_match(/the application raised an exception.*RuntimeError: boom/, server.log)
    end
  end

  # A log that was asked for is complete.
  def test_an_access_log_of_its_own
    path = File.join(folder_with, "access.log")
    server = serve(failing_blog, "--access-log", path, environment: "development")
    ["/", "/posts/new"].each { |target| browse(server, target) }
    server.stop
    assert_equal ["/", "/posts/new"], File.read(path).scan(ACCESS).flatten.last(2)
  end

  private

  # The blog, with an action that fails.
  def failing_blog(blog = copy_of_example("blog"))
    insert(blog, "config/routes.rb", "  get 'fail', to: 'posts#fail'\n")
    insert(blog, "app/controllers/posts_controller.rb", "  def fail = raise(ArgumentError, 'as written')\n",
           after: /class .*\n/)
    blog
  end

  def assert_rails_log(server)
    browse(server)
    seen = server.log.length
    ["/posts/new", "/fail", "/robots.txt", "/"].each { |target| browse(server, target) }
    wait_for("the log") { server.log[seen..].scan("Completed 200").length == 2 }
    log = server.log[seen..]
    seen = log.scan(OF_RAILS).map { |words| words.compact.join(" ") }
    assert_equal ["Started /posts/new", "Processing", "Completed", "Started /fail", "Processing", "Completed",
                  "Started /", "Processing", "Completed"], seen
    assert_equal ["/robots.txt"], log.scan(ACCESS).flatten # which never reaches Rails
    assert_match(%r{ArgumentError \(as written\):\n\s*app/controllers/posts_controller\.rb:\d+:in .*fail}, log)
    assert_match(/\e\[1m.*\e\[0m/, log) # Rails' own colours, of queries
    assert_operator log.index("Completed 500"), :<, log.index("as written")
  end
end
