# frozen_string_literal: true

require "rubygems/package"
require_relative "../support/clean_debian"
require_relative "../support/containers"
require_relative "../support/documents"
require_relative "../support/e2e_test"
require_relative "../support/native_gem"

# An application in a container. The Dockerfile of docs/deploying/docker.md builds its image. It runs as process 1, on a
# read-only file system, as a user that has no name.
class ContainerTest < E2ETest
  USER = "12345:12345"
  BASE = "docker.io/library/ruby:3.3-slim" # the name that the Dockerfile has for it
  # That the image may have more than the one with Ruby that it begins with. What the tests build is hardly optimised.
  MOST_BYTES = { "release" => 40 * MIB, "testing" => 64 * MIB }.fetch(ENV.fetch("HIGHBALL_PROFILE", "release"))
  APP = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/slow"
        $stderr.puts "slow: begun"
        sleep 0.1 until File.exist?("/go/on")
        [200, {}, ["slow"]]
      when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/large" then [200, {}, ["x" * 4_000_000]]
      when "/who" then [200, {}, ["#{Process.uid}:#{Process.gid}"]]
      else [200, {}, ["up"]]
      end
    }
    sleep 0.1 until File.exist?("/go/boot") || !Dir.exist?("/go")
  RUBY

  GEMFILE = <<~RUBY
    source "https://rubygems.org"
    gem "rack"
    gem "highball"
  RUBY

  def setup
    super
    why_not = CleanDebian.why_not || Containers.why_not
    skip why_not if why_not
    @containers = once(:containers) { Containers.new.tap { |made| Minitest.after_run { made.remove } } }
    once(:base) { import }
    why_not = once(:why_not) { @containers.why_not(BASE) }
    skip why_not if why_not
    once(:image) { build }
  end

  def test_it_is_small
    more = @containers.bytes_of("app") - @containers.bytes_of(BASE)
    puts format("the image has %.1f MiB more than the one with Ruby", more.fdiv(MIB))
    assert_operator more, :<, MOST_BYTES
  end

  def test_it_serves_read_only_as_any_user
    server = start
    assert_equal USER, server.get("/who").body
    body = "x" * (2 * MIB)
    assert_equal body.bytesize.to_s, server.request("POST", "/size", {}, body).body
    assert_equal 4_000_000, server.get("/large").body.bytesize
    inside = inside(server, "tr '\\0' ' ' </proc/1/cmdline; for folder in / /app /tmp /run; do ! touch $folder/x; done")
    assert_match(/highball/, inside)
    assert_equal 4, inside.scan("Read-only file system").length, inside
    assert_empty problems(server)
    assert_match(%r{the control socket is in another place.*/dev/shm/highball-12345/1\.sock}, server.log)
  end

  def test_root_finds_its_server_on_a_read_only_file_system
    server = start("--user", "0:0")
    assert_equal "0:0", server.get("/who").body
    assert_match(%r{/dev/shm/highball-0/1\.sock}, server.log)
    assert_match(/\(pid 1\), serving/, inside(server, "highball status --check"))
  end

  def test_it_serves_without_a_home_and_without_a_tmp
    bare = File.join(folder_with("Dockerfile" => "FROM localhost/app\nUSER 0\nRUN rmdir /tmp\n"), "Dockerfile")
    @containers.build(folder_with, bare, "bare")
    server = start(image: "bare", command: %w[env --unset=HOME bundle exec highball])
    refute_match(%r{^HOME=|^/tmp$}, inside(server, "tr '\\0' '\\n' </proc/1/environ; ls -d /tmp || true"))
    assert_equal (2 * MIB).to_s, server.request("POST", "/size", {}, "x" * (2 * MIB)).body
    assert_empty problems(server)
  end

  def test_commands_run_inside
    server = start
    assert_match(/\(pid 1\), serving/, inside(server, "highball status"))
    assert_match(/\(pid 1\), serving/, inside(server, "bundle exec highball status"))
    assert_match(/generation 2/, inside(server, "highball restart 2>&1"))
    assert_equal "up", server.get("/").body
    %w[highball bundle].each do |word|
      command = word == "bundle" ? "bundle exec highball status --check" : "highball status --check"
      took = timings(3) { inside(server, command) }
      puts format("%<command>s: %<seconds>.2f s with podman exec", command: command, seconds: took[1])
    end
    puts format("podman exec alone: %.2f s", timings(3) { inside(server, "true") }[1])
  end

  def test_it_is_healthy_when_it_serves
    go = go_folder
    server = start("--volume", "#{go}:/go:ro", wait: false)
    wait_for("the control socket") { booting?(server) }
    error = assert_raises(Containers::Failed) { @containers.run("healthcheck", "run", server.name) }
    assert_match(/unhealthy/, error.message)
    assert_match(/not serving: app is booting/, inside(server, "highball status --check || true"))
    FileUtils.touch(File.join(go, "boot"))
    server.wait_until_serving
    @containers.run("healthcheck", "run", server.name)
    assert_match(/generation 1/, inside(server, "highball status --check"))
  end

  def test_a_request_in_flight_is_answered_after_term
    go = go_folder("boot")
    server = start("--volume", "#{go}:/go:ro")
    slow = Thread.new { server.get("/slow", within: 30) }
    wait_for("the slow request") { server.log.include?("slow: begun") }
    server.signal("TERM")
    wait_for("the end of listening") { refuses_connections?(server) }
    FileUtils.touch(File.join(go, "on"))
    assert_equal "slow", slow.value.body
    assert_equal 0, server.wait.exitstatus
  end

  def test_it_ends_when_it_is_idle
    server = start
    process = Integer(@containers.run("inspect", "--format", "{{.State.Pid}}", server.name))
    began = Deadline.now
    server.signal("TERM")
    wait_for("the end of process 1") { !File.exist?("/proc/#{process}") }
    puts format("process 1 ended %.2f s after TERM", Deadline.now - began)
    assert_equal 0, server.wait.exitstatus
  end

  private

  MADE = {} # rubocop:disable Style/MutableConstant -- what the tests of this file share
  private_constant :MADE

  def once(name) = MADE.fetch(name) { MADE[name] = yield }

  # The image that the Dockerfile begins with: Debian's Ruby, and nothing to build with.
  def import
    debian = CleanDebian.new("trixie")
    @containers.import(debian.root, BASE)
  ensure
    debian&.remove
  end

  # The image of an application whose gems are in vendor/cache. Packages cannot be fetched here; none is needed.
  def build
    app = folder_with("config.ru" => APP, "Gemfile" => GEMFILE, "Gemfile.lock" => lock_file)
    cache = File.join(app, "vendor/cache")
    FileUtils.mkdir_p(cache)
    FileUtils.cp(NativeGem.path, cache)
    FileUtils.cp(rack_gem, cache)
    block = Document.new("docs/deploying/docker.md").blocks.find { |one| one.to_s.end_with?("(dockerfile container)") }
    dockerfile = File.join(folder_with("Dockerfile" => block.text), "Dockerfile")
    @containers.build(app, dockerfile, "app", missing: ["/usr/bin/apt-get"])
  end

  def rack = Gem::Specification.find_by_name("rack")

  # What `bundle lock` writes.
  def lock_file
    <<~LOCK
      GEM
        remote: https://rubygems.org/
        specs:
          highball (#{NativeGem::VERSION}-x86_64-linux)
            rack (>= 2.2, < 4)
          rack (#{rack.version})

      PLATFORMS
        x86_64-linux

      DEPENDENCIES
        highball
        rack
    LOCK
  end

  # Debian's Rack, as a gem.
  def rack_gem
    folder = folder_with
    FileUtils.cp_r(rack.full_require_paths.first, File.join(folder, "lib"))
    Dir.chdir(folder) do
      spec = Gem::Specification.new("rack", rack.version) do |made|
        made.summary = "Rack"
        made.authors = ["Rack"]
        made.files = Dir["lib/**/*.rb"]
      end
      File.join(folder, Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(spec, true) })
    end
  end

  def start(*options, image: "app", command: [], wait: true)
    server = @containers.start(image, "--read-only", "--read-only-tmpfs=false", "--user", USER, "--passwd=false",
                               "--env", "BINDING=127.0.0.1", "--env", "PORT=0", *options, command: command)
    @servers << server
    wait_for("the container", within: 180) { server.log.include?("booting") || !server.running? }
    server.wait_until_serving if wait
    server
  end

  # What the start reports, but for where uploads and the control socket are. (Podman misses systemd for its timers.)
  def problems(server)
    server.log.lines.grep(/warn|error|cannot|not writable/i).grep_v(/spool folder|systemd connection|control socket/)
  end

  def booting?(server)
    inside(server, "highball status").include?("booting")
  rescue Containers::Failed # it has just been started
    false
  end

  def inside(server, command) = @containers.exec(server, "sh", "-c", "exec 2>&1; #{command}")

  # A folder by which tests tell the application to go on.
  def go_folder(*files)
    folder_with(files.to_h { |name| [name, ""] }).tap { |folder| File.chmod(0o755, folder) }
  end

  def refuses_connections?(server)
    server.get("/")
    false
  rescue SystemCallError, EOFError
    true
  end
end
