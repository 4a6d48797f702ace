# frozen_string_literal: true

require_relative "../../rakelib/debian_packages"
require_relative "../support/gem_source"
require_relative "../support/gems_test_case"
require "highball/causes"

# The gem for x86-64, installed by RubyGems and by Bundler on Debians that have nothing to build with.
class InstalledGemTest < GemsTestCase
  # Where Bundler finds gems in these tests, as on a server for gems.
  SOURCE = "srv/gems"

  RELEASES.each do |release, abi|
    define_method("test_it_serves_the_blog_on_a_#{release}_without_a_compiler") do
      debian = debian(release)
      install(debian)
      server = highball_in(debian, app_in(debian, copy_of_example("blog")))
      use_the_blog(server, "Night train")
      assert_match(%r{/highball-0\.1\.0-x86_64-linux/libexec/highball\z}, File.readlink("/proc/#{server.pid}/exe"))
      wait_for_extension(debian, abi)
      assert_match(/generation 2/, debian.run("highball", "restart"))
      assert_includes server.get("/").body, "Night train"
    end
  end

  # Ruby 3.4 is not in a release of Debian yet: its packages are unpacked into a Debian 13.
  def test_it_serves_with_ruby_3_4
    debian = debian("trixie")
    unpacked = File.join(NativeGem::CACHE, "ruby3.4")
    packages = DebianPackages.new("experimental", "amd64", File.join(NativeGem::CACHE, "apt-experimental"))
    packages.unpack(%w[ruby3.4 libruby3.4], into: unpacked)
    FileUtils.cp_r("#{unpacked}/.", debian.root)
    install(debian, ruby: "ruby3.4")
    app = app_in(debian, File.join(HighballServer::EXAMPLES, "rack"))
    server = highball_in(debian, app)
    assert_equal "Hello World", server.get("/").body
    wait_for_extension(debian, "3.4.0")
  end

  # Of all gems that the source has, it takes that of the platform.
  def test_bundler_installs_it_from_a_source
    debian = debian("trixie")
    platforms = LEVEL == "full" ? %w[ruby x86_64-linux aarch64-linux] : %w[ruby x86_64-linux]
    GemSource.publish(debian.path(SOURCE), *platforms.map { |platform| NativeGem.path(platform) })
    app = app_in(debian, folder_with(
                           "Gemfile" => "source \"file:///#{SOURCE}\"\ngem \"rack\"\ngem \"highball\"\n",
                           "config.ru" => "run ->(_env) { [200, {}, [Gem.loaded_specs['highball'].full_name]] }\n"
                         ))
    debian.run("bundle", "install", folder: app)
    assert_includes File.read("#{debian.path(app)}/Gemfile.lock"), "highball (0.1.0-x86_64-linux)"
    server = serve_in(debian, app, *%w[bundle exec highball -e production -b 127.0.0.1 -p 0])
    assert_equal "highball-0.1.0-x86_64-linux", server.get("/").body
  end

  # As `bundle cache` leaves it for a deployment.
  def test_bundler_installs_it_from_vendor_cache
    debian = debian("bookworm")
    app = app_in(debian, folder_with(
                           "Gemfile" => "source \"https://rubygems.org\"\ngem \"rack\"\ngem \"highball\"\n",
                           "config.ru" => "run ->(_env) { [200, {}, [Gem.loaded_specs['highball'].full_name]] }\n"
                         ))
    FileUtils.mkdir_p("#{debian.path(app)}/vendor/cache")
    FileUtils.cp(NativeGem.path, "#{debian.path(app)}/vendor/cache")
    debian.run("bundle", "install", "--local", "--no-cache", folder: app)
    server = serve_in(debian, app, *%w[bundle exec highball -e production -b 127.0.0.1 -p 0])
    assert_equal "highball-0.1.0-x86_64-linux", server.get("/").body
  end

  def test_it_says_which_rubies_it_is_for
    debian = debian("bookworm")
    install(debian)
    FileUtils.rm_rf(Dir[debian.path("var/lib/gems/*/gems/highball-*/lib/highball/3.1.0")])
    app = app_in(debian, folder_with("config.ru" => "run ->(_env) { [200, {}, []] }\n"))
    error = assert_raises(CleanDebian::Failed) { debian.run("highball", "doctor", app) }
    assert_match(/not built for Ruby 3\.1\.\d+ \(only for 3\.3, 3\.4\)/, error.message)
    assert_includes error.message, Highball::Causes::FROM_SOURCES
  end
end
