# frozen_string_literal: true

require_relative "../support/gems_test_case"

# The gem for arm64, installed on Debians for arm64. On other machines qemu runs the programs of those, at about an
# eighth of the speed, and without Landlock and seccomp.
class Arm64GemTest < GemsTestCase
  PLATFORM = "aarch64-linux"
  WITHIN = 240 # seconds, for all that takes some seconds elsewhere
  LIMITS = %W[--boot-timeout #{WITHIN}s --probe-timeout #{WITHIN}s].freeze

  def setup
    super
    very_long # the gem is built, too
    why_not = CleanDebian.why_not("arm64") and skip why_not
    skip "needs Rust's libraries for arm64" unless File.exist?(NativeGem.path(PLATFORM))
  end

  RELEASES.each do |release, abi|
    define_method("test_it_serves_the_blog_on_a_#{release}_without_a_compiler") do
      server = serve_on_arm64(release, copy_of_example("blog"), "--workers", "1")
      use_the_blog(server, "Night train", within: WITHIN)
      wait_for_extension(@debian, abi, within: WITHIN)
    end
  end

  # The application's workers can be made to send garbage to the server. (Under qemu they do not find the memory that
  # they share with it.)
  def test_it_serves_restarts_and_replaces_workers
    server = serve_on_arm64("trixie", File.join(HighballServer::APPS, "scribbler"), "--workers", "2", "--threads", "1")
    assert_served(server)
    assert_match(/generation 2/, command_in(@debian, "restart"))
    assert_served(server)
    replaced("killed worker") { |pids| HighballServer.kill(pids.first) }
    replaced("misbehaving worker") { misbehave(server) }
    assert_served(server)
  end

  private

  def serve_on_arm64(release, app, *options)
    @debian = debian(release, architecture: "arm64")
    install(@debian, NativeGem.path(PLATFORM))
    highball_in(@debian, app_in(@debian, app), *LIMITS, *options, within: WITHIN)
  end

  def assert_served(server)
    assert_match(/\A\d+ one\n\z/, server.get("/", { "X-Token" => "one" }, within: WITHIN).body)
  end

  # Waits until one of two workers has been replaced, which the block, given their pids, does away with.
  def replaced(what)
    wait_for("both workers", within: WITHIN) { worker_pids_in(@debian).length == 2 }
    before = worker_pids_in(@debian)
    yield before
    wait_for("a replacement of the #{what}", within: WITHIN) do
      now = worker_pids_in(@debian)
      now.length == 2 && (now - before).length == 1
    end
  end

  # A worker that misbehaves may answer anything.
  def misbehave(server)
    server.request("POST", "/babble", {}, "", within: WITHIN)
  rescue EOFError, SystemCallError, HttpConnection::BadAnswer
    nil
  end
end
