# frozen_string_literal: true

require "json"
require "open3"
require_relative "../support/clean_debian"
require_relative "../support/containers"
require_relative "../support/e2e_test"
require_relative "../support/native_gem"

# An application in a container: its image is built from packaging/container/Dockerfile, and runs on a read-only file
# system without a /tmp, as a user that has no name, as process 1.
class ContainerTest < E2ETest
  USER = "12345:12345"
  MOST_BYTES = 40 * MIB # that the image may have more than the one with Ruby that it begins with
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/slow"
        $stderr.puts "slow: begun"
        sleep 0.5 until File.exist?("/go/on")
        [200, {}, ["slow"]]
      when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/who" then [200, {}, ["\#{Process.uid}:\#{Process.gid}"]]
      else [200, {}, ["up"]]
      end
    }
  RUBY

  def setup
    super
    why_not = CleanDebian.why_not || Containers.why_not
    skip why_not if why_not
    @@containers ||= Containers.new
    @@image ||= build
  end

  Minitest.after_run { @@containers.remove if defined?(@@containers) }

  def test_it_is_small
    more = @@containers.bytes_of("app") - @@containers.bytes_of("ruby")
    puts format("the image has %.1f MiB more than the one with Ruby", more.fdiv(MIB))
    assert_operator more, :<, MOST_BYTES
  end

  def test_it_serves_read_only_as_any_user
    server = start
    assert_equal USER, server.get("/who").body
    assert_equal (1 << 20).to_s, server.request("POST", "/size", {}, "x" * (1 << 20)).body
    inside = @@containers.run("exec", server.name, "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline; touch /x /tmp/x 2>&1; true")
    assert_match(/highball/, inside)
    assert_equal 2, inside.scan("Read-only file system").length, inside
  end

  def test_its_health_is_asked_inside
    server = start
    assert_match(/serving/, @@containers.run("exec", server.name, "bundle", "exec", "highball", "status"))
    assert_equal %w[CMD bundle exec highball status], @@containers.inspect("app").dig("Healthcheck", "Test")
  end

  def test_a_request_in_flight_is_answered_after_term
    go = folder_with
    File.chmod(0o755, go)
    server = start("--volume", "#{go}:/go:ro")
    slow = Thread.new { server.get("/slow", within: 30) }
    wait_for("the slow request") { server.log.include?("slow: begun") }
    server.signal("TERM")
    wait_for("the end of listening") { refuses_connections?(server) }
    FileUtils.touch(File.join(go, "on"))
    assert_equal "slow", slow.value.body
    assert_equal 0, server.wait.exitstatus
  end

  def test_it_ends_at_once_when_it_is_idle
    server = start
    began = Deadline.now
    assert_equal 0, server.stop("TERM", within: 10).exitstatus
    puts format("ended %.2f s after TERM", Deadline.now - began)
  end

  private

  # The image: the application with the gem in vendor/cache, on an image that has Ruby and nothing to build with.
  def build
    debian = CleanDebian.new("trixie")
    @@containers.import(debian.root, "ruby")
    app = folder_with("config.ru" => APP, "Gemfile" => "source \"https://rubygems.org\"\ngem \"rack\"\ngem \"highball\"\n")
    FileUtils.mkdir_p(File.join(app, "vendor/cache"))
    FileUtils.cp(NativeGem.path, File.join(app, "vendor/cache"))
    FileUtils.cp_r(app, debian.path("srv/app"))
    debian.run("bundle", "install", "--local", folder: "/srv/app")
    FileUtils.cp(debian.path("srv/app/Gemfile.lock"), app)
    @@containers.build(app, File.join(HighballServer::ROOT, "packaging/container/Dockerfile"), "app",
                       "BASE" => "localhost/ruby", "BUILD_PACKAGES" => "")
  ensure
    debian&.remove
  end

  def start(*options)
    server = @@containers.start("app", "--read-only", "--read-only-tmpfs=false", "--user", USER, *options,
                                "--env", "BINDING=127.0.0.1", "--env", "PORT=0")
    @servers << server
    server.wait_until_serving
    server
  end

  def refuses_connections?(server)
    server.get("/")
    false
  rescue SystemCallError, EOFError
    true
  end
end
