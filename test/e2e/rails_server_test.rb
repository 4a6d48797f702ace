# frozen_string_literal: true

require "socket"
require_relative "../support/bundled_blog"
require_relative "../support/e2e_test"

# An application with `gem "highball"` in the place of Puma, started as Rails developers start theirs.
class RailsServerTest < E2ETest
  include BundledBlog

  ADDRESS = %w[-b 127.0.0.1 -p 0].freeze
  PIDFILE = "tmp/pids/server.pid"

  def test_rails_server_is_highball
    server = rails_server(bundled_blog, *ADDRESS)
    assert_match(/^=> Booting Highball\n=> Rails \d/, server.log)
    refute_match(/Puma|WEBrick/i, server.log)
    assert_includes browse(server).body.force_encoding("UTF-8"), "Nothing here yet"
    assert_equal "development", server.status["environment"]
    assert_equal [server.pid, server.pid], [server.status["pid"], pid_in(server.app)]
    server.signal("INT") # as Ctrl-C
    assert_predicate server.wait, :success?
    refute_path_exists File.join(server.app, PIDFILE)
  end

  # It is the mold that loads it: until then this process has read config/application.rb, and nothing else.
  def test_the_application_is_loaded_once
    blog = bundled_blog
    File.write(File.join(blog, "config/environment.rb"), "\nFile.write('loaded', \"once\\n\", mode: 'a')\n", mode: "a")
    server = rails_server(blog, *ADDRESS)
    assert_equal "once\n", File.read(File.join(blog, "loaded"))
    assert_equal 200, browse(server).status
  end

  def test_its_options
    server = rails_server(bundled_blog, *ADDRESS, "-e", "production", "-P", "tmp/own.pid", "--log-to-stdout")
    assert_equal server.pid, Integer(File.read(File.join(server.app, "tmp/own.pid")))
    assert_equal "production", server.status["environment"]
    assert_equal 200, browse(server).status
    wait_for("Rails's log") { server.log.include?("Started GET \"/\"") }
  end

  def test_the_environment_as_procfiles_and_platforms_set_it
    port = free_port
    blog = bundled_blog
    # As foreman runs a line of a Procfile.
    server = serve(blog, command: ["sh", "-c", "exec ruby bin/rails server -p $PORT"],
                         env: ENVIRONMENT.merge("PORT" => port.to_s, "BINDING" => "127.0.0.1", "WEB_CONCURRENCY" => "2",
                                                "RAILS_ENV" => "production"))
    assert_equal port, server.port
    wait_for("both workers") { server.worker_pids.length == 2 }
  end

  def test_another_server_in_the_bundle_stays_what_is_started
    skip "Puma is not installed" if Gem::Specification.stubs_for("puma").empty?
    blog = bundled_blog("gem \"puma\"\n")
    assert_match(/^=> Booting Puma/, start_puma(blog))
    named = [{ arguments: %w[-u highball] }, { env: { "RACK_HANDLER" => "highball", "RACKUP_HANDLER" => "highball" } }]
    named.each do |way|
      server = rails_server(blog, *ADDRESS, *way[:arguments], env: way.fetch(:env, {}))
      assert_match(/^=> Booting Highball/, server.log)
      server.stop
    end
  end

  def test_as_a_daemon
    blog = bundled_blog
    port = free_port
    output, ended = run_in(blog, "ruby", "bin/rails", "server", "-d", "-b", "127.0.0.1", "-p", port.to_s)
    assert_predicate ended, :success?, output
    wait_for("the PID file") { File.size?(File.join(blog, PIDFILE)) }
    pid = pid_in(blog)
    wait_for("an answer", within: 60) { status_at(port) == 200 }
    output, ended = run_in(blog, "ruby", "bin/rails", "server", "-b", "127.0.0.1", "-p", port.to_s)
    refute_predicate ended, :success?
    assert_match(/A server is already running/, output)
    Process.kill("TERM", pid)
    wait_for("its end", within: 40) { !File.exist?("/proc/#{pid}") }
    refute_path_exists File.join(blog, PIDFILE)
  ensure
    HighballServer.kill(pid) if pid
  end

  def test_rails_restart_in_development
    server = rails_server(bundled_blog, *ADDRESS)
    initializer = File.join(server.app, "config/initializers/title.rb")
    FileUtils.mkdir_p(File.dirname(initializer))
    File.write(initializer, "Rails.application.config.middleware.use(Class.new { def initialize(app) = @app = app\n" \
                            "def call(_env) = [200, {}, ['restarted']] })\n")
    output, ended = run_in(server.app, "ruby", "bin/rails", "restart")
    assert_predicate ended, :success?, output
    wait_for("the new version", within: 60) { browse(server).body == "restarted" }
    assert_equal server.pid, server.status["pid"]
  end

  # The console, Rake and the runner load the gem as well.
  def test_other_commands_load_no_server
    blog = bundled_blog
    output, ended = run_in(blog, "ruby", "bin/rails", "runner", <<~RUBY)
      puts Highball::VERSION, $LOADED_FEATURES.grep(%r{highball/(handler|native|mold)}).inspect
    RUBY
    assert_predicate ended, :success?, output
    assert_match(/^\d+\.\d+\.\d+\n\[\]\n\z/, output)
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

  def pid_in(blog) = Integer(File.read(File.join(blog, PIDFILE)))
  def free_port = TCPServer.open("127.0.0.1", 0) { |listener| listener.addr[1] }
  def rackup? = Gem::Specification.stubs_for("rackup").any?

  def status_at(port)
    HttpConnection.tcp(port).get("/", { "Host" => "127.0.0.1" }).status
  rescue SystemCallError, EOFError
    nil
  end

  # What it prints until it listens.
  def start_puma(blog)
    log = File.join(blog, "puma.log")
    command = ["ruby", "bin/rails", "server", "-b", "127.0.0.1", "-p", free_port.to_s]
    environment = HighballServer::ENVIRONMENT.merge(ENVIRONMENT)
    pid = Process.spawn(environment, *command, chdir: blog, in: File::NULL, %i[out err] => log)
    wait_for("Puma", within: 60) { File.read(log).include?("Listening on") }
    File.read(log)
  ensure
    HighballServer.kill(pid, "TERM")
    Process.wait(pid)
  end
end
