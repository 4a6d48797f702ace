# frozen_string_literal: true

# marks: long

require "socket"
require_relative "../../support/bundled_blog"
require_relative "../../support/e2e_test"

# An application with `gem "highball"` in the place of Puma, started as Rails developers start theirs.
class RailsServerTest < E2ETest
  include BundledBlog

  ADDRESS = %w[-b 127.0.0.1 -p 0].freeze
  PIDFILE = "tmp/pids/server.pid"

  def test_rails_server_is_highball
    blog = bundled_blog
    File.write(File.join(blog, "config/environment.rb"), "\nFile.write('loaded', \"once\\n\", mode: 'a')\n", mode: "a")
    server = rails_server(blog, *ADDRESS)
    assert_is_highball(server)
    # It is the mold that loads it: until then this process has read config/application.rb, and nothing else.
    assert_equal "once\n", File.read(File.join(blog, "loaded"))
    assert_restarts(server)
    server.signal("INT") # as Ctrl-C
    assert_predicate server.wait, :success?
    refute_path_exists File.join(blog, PIDFILE)
  end

  def test_its_options
    server = rails_server(bundled_blog, *ADDRESS, "-e", "production", "-P", "tmp/own.pid", "--log-to-stdout",
                          "--early-hints")
    assert_equal server.pid, Integer(File.read(File.join(server.app, "tmp/own.pid")))
    assert_equal "production", server.status["environment"]
    server.connect do |connection|
      early = connection.get("/")
      assert_equal [103, 200], [early.status, connection.read_response.status]
      assert_match(%r{</stylesheets/application\.css>; rel=preload}, early["link"])
    end
    wait_for("Rails' log") { server.log.include?("Started GET \"/\"") }
  end

  # What that file makes is served as an object: this process loads it.
  def test_another_config_ru
    blog = bundled_blog
    File.write(File.join(blog, "other.ru"), <<~RUBY)
      require_relative "config/environment"
      run ->(_env) { [200, {}, ["by other.ru"]] }
    RUBY
    server = rails_server(blog, *ADDRESS, "-c", "other.ru")
    assert_equal "by other.ru", browse(server).body
    highball_fails("restart", "--port", server.port.to_s)
    server.signal("INT")
    assert_predicate server.wait, :success?
  end

  def test_another_server_in_the_bundle_stays_what_is_started
    skip "Puma is not installed" if Gem::Specification.stubs_for("puma").empty?
    blog = bundled_blog("gem \"puma\"\n")
    ways = { [] => {}, %w[-u highball] => {}, %w[--using=highball] => {},
             [[]] => { "RACK_HANDLER" => "highball", "RACKUP_HANDLER" => "highball" } }
    booting = ways.map { |arguments, env| boot(blog, *arguments.flatten, env: env) }
    started = booting.map { |server| wait_for("its name", within: 60) { server.log[/^=> Booting (\w+)/, 1] } }
    assert_equal %w[Puma Highball Highball Highball], started
  end

  # With the variables that Procfiles and platforms set, as foreman runs a line of a Procfile.
  def test_as_a_daemon
    blog = bundled_blog
    port = free_port
    run_server(blog, "exec ruby bin/rails server -d -p $PORT", port)
    wait_for("an answer", within: 60) { status_at(port) == 200 }
    pid = pid_in(blog)
    assert_equal "production", status_of(port)["environment"]
    wait_for("both workers") { status_of(port)["workers"].count { |worker| worker["pid"] } == 2 }
    run_server(blog, "ruby bin/rails server -p $PORT && exit 1; exit 0", port, /A server is already running/)
    Process.kill("TERM", pid)
    wait_for("its end", within: 40) { !ProcessFacts.alive?(pid) }
    refute_path_exists File.join(blog, PIDFILE)
  ensure
    HighballServer.kill(pid) if pid
  end

  # A PID file that stays keeps the next server from starting where process ids repeat, as in containers.
  def test_a_signal_at_its_start_leaves_no_pid_file
    blog = bundled_blog
    File.write(File.join(blog, "config/puma.rb"), "File.write('begun', '')\nsleep 0.1 until File.exist?('end')\n")
    pid = Process.spawn(HighballServer::ENVIRONMENT.merge(ENVIRONMENT), "ruby", "bin/rails", "server", *ADDRESS,
                        chdir: blog, in: File::NULL, %i[out err] => File.join(blog, "server.log"))
    wait_for("config/puma.rb", within: 60) { File.exist?(File.join(blog, "begun")) }
    HighballServer.kill(pid, "INT")
    Process.wait(pid)
    refute_path_exists File.join(blog, PIDFILE)
  ensure
    File.write(File.join(blog, "end"), "")
  end

  # Rake and the runner load the gem as well.
  def test_the_console_loads_no_server
    output, ended = run_in(bundled_blog, "ruby", "bin/rails", "console", input: <<~RUBY)
      [Post.name, Rails.env, Highball.name].join(" ")
      $LOADED_FEATURES.grep(%r{highball/(handler|native|mold)}).inspect
    RUBY
    assert_predicate ended, :success?, output
    assert_match(/"Post development Highball"\n.*"\[\]"\n/m, output)
  end

  # Without Rails: config.ru loads the bundle, as many do.
  def test_rackup
    folder = folder_with("Gemfile" => "source 'https://rubygems.org'\ngem 'rack'\n#{'gem \'rackup\'' if rackup?}\n" \
                                      "gem 'highball', path: '#{HighballServer::ROOT}'\n",
                         "config.ru" => "Bundler.require\nrun ->(_env) { [200, {}, ['racked up']] }\n")
    server = serve(folder, command: %w[bundle exec rackup -o 127.0.0.1 -p 0], env: ENVIRONMENT)
    assert_equal "racked up", server.get("/").body
    assert_equal server.pid, server.status["pid"]
  end

  private

  def assert_is_highball(server)
    assert_match(/^=> Booting Highball\n=> Rails \d/, server.log)
    refute_match(/Puma|WEBrick/i, server.log)
    assert_includes browse(server).body.force_encoding("UTF-8"), "Nothing here yet"
    assert_equal "development", server.status["environment"]
    assert_equal [server.pid, server.pid], [server.status["pid"], pid_in(server.app)]
  end

  def assert_restarts(server)
    initializer = File.join(server.app, "config/initializers/title.rb")
    FileUtils.mkdir_p(File.dirname(initializer))
    File.write(initializer, "Rails.application.config.middleware.use(Class.new { def initialize(app) = @app = app\n" \
                            "def call(_env) = [200, {}, ['restarted']] })\n")
    output, ended = run_in(server.app, "ruby", "bin/rails", "restart")
    assert_predicate ended, :success?, output
    wait_for("the new version", within: 60) { browse(server).body == "restarted" }
    assert_equal server.pid, server.status["pid"]
  end

  # Starts `bin/rails server`, and does not wait for it.
  def boot(blog, *arguments, env:)
    command = ["ruby", "bin/rails", "server", "-b", "127.0.0.1", "-p", free_port.to_s, "-P", "#{free_port}.pid"]
    HighballServer.new(blog, command: [*command, *arguments], env: ENVIRONMENT.merge(env))
                  .tap { |server| @servers << server }
  end

  def run_server(blog, script, port, printed = //)
    variables = { "PORT" => port.to_s, "BINDING" => "127.0.0.1", "PIDFILE" => PIDFILE, "WEB_CONCURRENCY" => "2",
                  "RAILS_ENV" => "production" }
    output, ended = run_in(blog, "sh", "-c", script, env: variables)
    assert_predicate ended, :success?, output
    assert_match printed, output
  end

  def status_of(port)
    output, = HighballServer.run("status", "--json", "--port", port.to_s)
    JSON.parse(output).fetch("apps").first
  end

  def pid_in(blog) = Integer(File.read(File.join(blog, PIDFILE)))
  def rackup? = Gem::Specification.stubs_for("rackup").any?

  def status_at(port)
    HttpConnection.tcp(port).get("/", { "Host" => "127.0.0.1" }).status
  rescue SystemCallError, EOFError
    nil
  end
end
