# frozen_string_literal: true

# marks: debian13

require "open3"
require "rbconfig"
require_relative "../../support/e2e_test"

# The gem: built, installed into an empty folder, and run from there. A fake cargo copies the existing build, because
# building takes minutes.
class GemTest < E2ETest
  GEMSPEC = "highball.gemspec"

  def test_it_is_installed_and_serves
    home = install(cargo)
    app = folder_with("config.ru" => "run ->(_env) { [200, {}, ['from the gem']] }\n")
    options = %w[-e production -b 127.0.0.1 -p 0]
    server = serve(app, command: [File.join(home, "bin/highball"), *options, app],
                        env: { "GEM_HOME" => home, "HIGHBALL_LIB" => nil, "HIGHBALL_RUBY" => nil })
    assert_equal "from the gem", server.get("/").body
    running = File.readlink("/proc/#{server.pid}/exe")
    assert running.start_with?(File.realpath(home)), running
    loaded = File.read("/proc/#{server.worker_pids.first}/maps").scan(/\S+highball_ext\.so/).uniq
    assert_equal [File.join(File.dirname(running), "highball_ext.so")], loaded
  end

  def test_it_says_what_is_missing
    assert_match(/Rust 1\.85 or later, and \S+ is of 1\.63\.0\. Install it/, refused(cargo("1.63.0")))
  end

  # All files that the sources include have to be in the gem, or it could not be built.
  def test_it_has_what_is_included
    files = Gem::Specification.load(File.join(HighballServer::ROOT, GEMSPEC)).files
    sources = files.grep(/\.rs\z/).reject { |file| file.include?("/tests/") }
    included = sources.flat_map do |file|
      text = File.read(File.join(HighballServer::ROOT, file))
      text.scan(/include_(?:str|bytes)!\(\s*"([^"]+)"/).map { |(path)| File.join(File.dirname(file), path) }
    end
    refute_empty included
    assert_empty(included.map { |path| File.expand_path(path, "/")[1..] } - files)
  end

  private

  # A folder with a `cargo` of this version, which builds nothing.
  def cargo(version = "1.85.0")
    extension = File.join(HighballServer::ENVIRONMENT["HIGHBALL_LIB"], "highball", RbConfig::CONFIG["ruby_version"],
                          "highball_ext.so")
    folder = folder_with("cargo" => <<~SH)
      #!/bin/sh
      [ "$1" = --version ] && echo "cargo #{version}" && exit
      mkdir -p target/release
      cp "#{HighballServer::BINARY}" target/release/highball
      cp "#{extension}" target/release/libhighball_ext.so
      cp "#{File.join(HighballServer::ENVIRONMENT['HIGHBALL_LIB'], 'highball/highball_jemalloc.so')}" target/release/libhighball_jemalloc.so
    SH
    File.chmod(0o755, File.join(folder, "cargo"))
    folder
  end

  # Builds and installs: [its folder, what was printed, Process::Status].
  def try_to_install(cargo)
    home = folder_with
    gem = File.join(home, "highball.gem")
    env = { "GEM_HOME" => home, "HOME" => home, "CARGO_TARGET_DIR" => nil, "PATH" => "#{cargo}:#{ENV.fetch('PATH')}" }
    built, ended = Open3.capture2e("gem", "build", GEMSPEC, "--output", gem, chdir: HighballServer::ROOT)
    assert_predicate ended, :success?, built
    [home, *Open3.capture2e(env, "gem", "install", "--local", "--no-document", "--bindir", File.join(home, "bin"), gem)]
  end

  def install(cargo)
    home, output, ended = try_to_install(cargo)
    assert_predicate ended, :success?, output
    home
  end

  def refused(cargo)
    _home, output, ended = try_to_install(cargo)
    refute_predicate ended, :success?, output
    output
  end
end
