# frozen_string_literal: true

require "cgi"
require "json"
require "uri"
require_relative "clean_debian_test_case"
require_relative "native_gem"

# A test of the gems that need no compiler, on Debians that have Ruby, Rails, and nothing to build with.
class GemsTestCase < CleanDebianTestCase
  # The releases of Debian, and of their Rubies.
  RELEASES = { "bookworm" => "3.1.0", "trixie" => "3.3.0" }.freeze
  # What examples/blog needs.
  PACKAGES = File.readlines(File.join(HighballServer::EXAMPLES, "blog/debian-packages"), chomp: true).freeze
  COMPILERS = %w[cc gcc clang cargo rustc make].freeze

  private

  def debian(release, **options)
    debian = for_this_test(CleanDebian.new(release, packages: PACKAGES, **options))
    tools = COMPILERS.map { |name| "command -v #{name}" }.join(" || ")
    assert_raises(CleanDebian::Failed, "it has something to build with") { debian.run("sh", "-c", tools) }
    debian
  end

  # Installs the gem, and prints how long that took.
  def install(debian, gem = NativeGem.path, ruby: "ruby")
    FileUtils.cp(gem, debian.path("tmp"))
    began = Deadline.now
    debian.run(ruby, "-S", "gem", "install", "--local", "--no-document", "/tmp/#{File.basename(gem)}")
    puts format("gem install --local %<gem>s: %<seconds>.1f s", gem: File.basename(gem), seconds: Deadline.now - began)
  end

  # Puts a copy of an example or of a test's application into the Debian, and returns its path there.
  def app_in(debian, source)
    FileUtils.mkdir_p(debian.path("srv"))
    FileUtils.cp_r(source, debian.path("srv"))
    "/srv/#{File.basename(source)}"
  end

  # Starts a command there that serves this application.
  def serve_in(debian, app, *command, **settings)
    serve(debian.path(app), command: debian.command(*command, folder: app), env: CleanDebian::ENVIRONMENT, **settings)
  end

  # Starts the installed Highball there.
  def highball_in(debian, app, *options, **settings)
    serve_in(debian, app, "highball", "-e", "production", "-b", "127.0.0.1", "-p", "0", *options, app, **settings)
  end

  # Uses the blog as its visitors do: writes a post, and reads it.
  def use_the_blog(server, title, within: HttpConnection::WITHIN)
    assert_equal 200, server.get("/stylesheets/application.css", within: within).status
    form = server.get("/posts/new", within: within)
    token = CGI.unescapeHTML(form.body[/name="authenticity_token" value="([^"]+)"/, 1])
    post = URI.encode_www_form("authenticity_token" => token, "post[title]" => title, "post[body]" => "On time.")
    answer = server.request("POST", "/posts", { "Content-Type" => "application/x-www-form-urlencoded",
                                                "Cookie" => form["set-cookie"][/\A[^;]+/] }, post, within: within)
    assert_equal 302, answer.status
    assert_includes server.get("/", within: within).body, title
  end

  # What a command of Highball prints there. (Not by the script of RubyGems, for which emulation takes seconds.)
  def command_in(debian, *words)
    binary = Dir[debian.path("var/lib/gems/*/gems/highball-*/libexec/highball")].first.delete_prefix(debian.root)
    debian.run(binary, *words)
  end

  # What `highball status` reports there about its only application.
  def status_in(debian) = JSON.parse(command_in(debian, "status", "--json")).fetch("apps").first

  # The workers have loaded Highball's extension from the installed gem. (The first worker may just be replaced.)
  def wait_for_extension(debian, abi, within: Deadline::WITHIN)
    wait_for("a worker with the gem's extension for Ruby #{abi}", within: within) do
      worker_pids_in(debian).any? do |pid|
        File.read("/proc/#{pid}/maps").match?(%r{/lib/highball/#{Regexp.escape(abi)}/highball_ext\.so$})
      rescue Errno::ENOENT, Errno::ESRCH
        false # it has ended
      end
    end
  end

  def worker_pids_in(debian) = status_in(debian).fetch("workers").filter_map { |worker| worker["pid"] }
end
