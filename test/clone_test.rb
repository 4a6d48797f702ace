# frozen_string_literal: true

require "etc"
require "fileutils"
require "minitest/autorun"
require "open3"
require "shellwords"
require "tmpdir"
require_relative "support/highball_server"
require_relative "support/user_mode_linux"

# The tests run wherever the tree is cloned: below /tmp, with blanks, an apostrophe and letters beyond ASCII in its path
# and as another user than root. What is built is this tree's.
class CloneTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  LEVEL = ENV.fetch("HIGHBALL_TEST_LEVEL", "default")
  BINARY = HighballServer::BINARY
  # A quick one of each kind.
  FILES = %w[test/docs_test.rb test/highball/sendfile_test.rb test/highball/pstore_extension_test.rb
             test/e2e/http/framing_test.rb].freeze
  OTHER_USER = "games"

  def setup
    @home = Dir.mktmpdir("highball clone's größe", "/tmp")
    File.chmod(0o755, @home)
    @tree = File.join(@home, "a tree")
    Dir.mkdir(@tree)
    copy_tree
  end

  def teardown = FileUtils.rm_rf(@home)

  def test_the_command
    skip "a user has fewer rights: bin/test --full" if Process.uid.zero? && LEVEL != "full"
    assert_passes
  end

  def test_as_another_user
    skip "needs root" unless Process.uid.zero?
    FileUtils.chown_R(OTHER_USER, nil, @home)
    user = Etc.getpwnam(OTHER_USER)
    assert_passes("setpriv", "--reuid=#{user.uid}", "--regid=#{user.gid}", "--clear-groups", "--")
  end

  def test_in_user_mode_linux
    skip "takes very long: bin/test --full" unless LEVEL == "full"
    UserModeLinux.why_not&.then { |why_not| skip why_not }
    file = File.join(@tree, "test/e2e/memory/cgroups_test.rb")
    skip "this machine's cgroups have limits" unless File.read(file).include?("if CgroupOfUnit.why_not")
    output, ended = run_in_tree({ "HIGHBALL_UML_TEST" => "-n /are_seen/", "HIGHBALL_TEST_LEVEL" => "default" },
                                "ruby", "-Ilib", "-Itest", "test/e2e/memory/cgroups_test.rb", "-n", "/in_user_mode/")
    assert_predicate ended, :success?, output
  end

  private

  # The sources, without what other runs of tests have left.
  def copy_tree
    unwanted = %w[./target ./bench/target ./fuzz/target .git examples/*/log/* examples/*/tmp/*]
    unwanted.map! { |path| "--exclude=#{path}" }
    copied = ["tar", "--create", "--directory", ROOT, *unwanted, "."].shelljoin
    assert system("sh", "-c", "#{copied} | #{['tar', '--extract', '--no-same-owner', '--directory', @tree].shelljoin}")
    profile = File.join(@tree, "target/testing")
    FileUtils.mkdir_p(profile)
    FileUtils.cp(BINARY, File.join(profile, "highball"))
  end

  def assert_passes(*through)
    output, ended = run_in_tree({}, *through, "bin/test", "--list")
    assert_predicate ended, :success?, output
    assert_includes output.split, "e2e"
    output, ended = run_in_tree({}, *through, "bin/test", *FILES)
    assert_predicate ended, :success?, output
    assert_match(/^\d+ passed, 0 failed$/, output)
  end

  def run_in_tree(env, *command)
    profile = File.join(@tree, "target/testing/highball")
    own = { "CARGO_TARGET_DIR" => nil, "HIGHBALL_PROFILE" => "testing", "HIGHBALL_BIN" => profile, "HOME" => @home,
            "HIGHBALL_LIB" => File.join(@tree, "lib"), "HIGHBALL_SERVER_USER" => nil, "XDG_CACHE_HOME" => nil,
            "TMPDIR" => nil }
    Open3.capture2e(own.merge(env), *command, chdir: @tree)
  end
end
