# frozen_string_literal: true

require "open3"
require "json"
require "rbconfig"
require "highball/causes"
require_relative "../../support/e2e_test"
require_relative "../../support/linux_gem"

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

  # Of the gem for this platform, no extension is for this Ruby: the command that Highball names builds one.
  def test_the_command_for_another_ruby
    home = folder_with
    gem = without_extension
    env = environment(home, cargo).merge("HIGHBALL_RUBY" => nil, "HIGHBALL_LIB" => nil, "GEMRC" => "#{home}/gemrc")
    File.write("#{home}/gemrc", "gem: --local --no-document\n") # where this test may not ask rubygems.org
    app = folder_with("config.ru" => "run ->(_env) { [200, {}, []] }\n")
    run_to_its_end(env, "gem", "install", "--bindir", "#{home}/bin", gem)
    report, ended = Open3.capture2(env, "#{home}/bin/highball", "doctor", "--json", "--port", "0", app)
    refute_predicate ended, :success?
    diagnosis = JSON.parse(report).fetch("diagnosis")
    assert_equal "extension_missing", diagnosis["cause"]
    assert_match(/not built for Ruby #{RUBY_VERSION} \(only for 2\.9\)/, diagnosis.dig("error", "message"))
    # What follows `gem install` is found in the current folder.
    source = FileUtils.mkdir_p("#{home}/source").first
    run_to_its_end(env, "gem", "build", GEMSPEC, "--output", "#{source}/highball-0.1.0.gem",
                   chdir: HighballServer::ROOT)
    run_to_its_end(env, "sh", "-c", diagnosis.fetch("command"), chdir: source)
    run_to_its_end(env, "#{home}/bin/highball", "doctor", "--port", "0", app)
  end

  # In a bundle, the Gemfile decides which gem is installed.
  def test_the_command_for_another_ruby_in_a_bundle
    folder = folder_with("Gemfile" => "gem 'rack'\n  gem 'highball', '~> 0.1' # the server\ngem \"highball-x\"\n")
    command = Highball::Causes::BUNDLE_FROM_SOURCES.sub("bundle install", "true")
    run_to_its_end({}, "sh", "-c", command, chdir: folder)
    assert_equal "gem 'rack'\n  gem 'highball', '~> 0.1', force_ruby_platform: true # the server\ngem \"highball-x\"\n",
                 File.read("#{folder}/Gemfile")
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

  # The gem for this platform, with an extension for a Ruby that there never was.
  def without_extension
    extension = Dir[File.join(HighballServer::ENVIRONMENT.fetch("HIGHBALL_LIB"), "highball/*/highball_ext.so")].first
    LinuxGem.write(folder_with, { "libexec/highball" => HighballServer::BINARY,
                                  "lib/highball/2.9.0/highball_ext.so" => extension })
  end

  def run_to_its_end(env, *command, **options)
    output, ended = Open3.capture2e(env, *command, **options)
    assert_predicate ended, :success?, output
  end

  def environment(home, cargo)
    { "GEM_HOME" => home, "HOME" => home, "CARGO_TARGET_DIR" => nil, "PATH" => "#{cargo}:#{ENV.fetch('PATH')}" }
  end

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
    env = environment(home, cargo)
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
