# frozen_string_literal: true

require "json"
require "open3"
require "rubygems/package"
require_relative "../support/clean_debian"
require_relative "../support/e2e_test"
require_relative "../support/native_gem"

# The gem for x86-64 that needs no compiler: looked into, and installed on a Debian 12 and a Debian 13 that have a
# Ruby and nothing to build with.
class NativeGemTest < E2ETest
  # The releases of Debian, and of their Rubies.
  RELEASES = { "bookworm" => "3.1.0", "trixie" => "3.3.0" }.freeze
  ABIS = RELEASES.values.freeze
  # What the loader finds on any Linux with glibc.
  LIBRARIES = /\A(?:libc|libm|libpthread|libdl|librt|libgcc_s|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d\z/
  OLDEST_GLIBC = Gem::Version.new("2.17")
  MOST_BYTES = 8 * MIB
  INSTALLS_WITHIN = 60 # seconds; it takes two or three

  def setup
    super
    @debians = []
    why_not = CleanDebian.why_not and skip why_not
  end

  def teardown
    super
  ensure
    @debians.each(&:remove)
  end

  RELEASES.each do |release, abi|
    define_method("test_it_serves_on_a_#{release}_without_a_compiler") do
      debian = debian(release)
      install(debian)
      app = debian.path("srv/app")
      FileUtils.cp_r(File.join(HighballServer::EXAMPLES, "rack"), app)
      server = serve_in(debian, "/srv/app", "highball", "-e", "production", "-b", "127.0.0.1", "-p", "0", "/srv/app")
      assert_equal "Hello World", server.get("/").body
      assert_match(%r{/highball-0\.1\.0-x86_64-linux/libexec/highball\z}, File.readlink("/proc/#{server.pid}/exe"))
      worker = JSON.parse(debian.run("highball", "status", "--json")).dig("apps", 0, "workers", 0, "pid")
      assert_match(%r{/lib/highball/#{abi}/highball_ext\.so$}, File.read("/proc/#{worker}/maps"))
      assert_match(/generation 2/, debian.run("highball", "restart"))
      assert_equal "Hello World", server.get("/").body
    end
  end

  def test_bundler_installs_it
    debian = debian("trixie")
    app = debian.path("srv/app")
    FileUtils.mkdir_p("#{app}/vendor/cache")
    FileUtils.cp(native, "#{app}/vendor/cache")
    File.write("#{app}/Gemfile", "source \"https://rubygems.org\"\ngem \"rack\"\ngem \"highball\"\n")
    File.write("#{app}/config.ru", "run ->(_env) { [200, {}, [Gem.loaded_specs['highball'].full_name]] }\n")
    debian.run("bundle", "install", "--local", "--no-cache", folder: "/srv/app")
    assert_includes File.read("#{app}/Gemfile.lock"), "highball (0.1.0-x86_64-linux)"
    words = %w[bundle exec highball -e production -b 127.0.0.1 -p 0]
    server = serve_in(debian, "/srv/app", *words)
    assert_equal "highball-0.1.0-x86_64-linux", server.get("/").body
  end

  def test_it_says_which_rubies_it_is_for
    debian = debian("bookworm")
    install(debian)
    FileUtils.rm_rf(Dir[debian.path("var/lib/gems/*/gems/highball-*/lib/highball/3.1.0")])
    app = folder_with("config.ru" => "run ->(_env) { [200, {}, []] }\n")
    FileUtils.cp_r(app, debian.path("srv/app"))
    error = assert_raises(CleanDebian::Failed) { debian.run("highball", "doctor", "/srv/app") }
    assert_match(/not built for Ruby 3\.1\.\d+ \(only for 3\.3\)/, error.message)
    assert_includes error.message, "gem install highball --platform ruby"
  end

  def test_it_holds_what_it_should
    package = Gem::Package.new(native)
    spec = package.spec
    assert_equal ["x86_64-linux", []], [spec.platform.to_s, spec.extensions]
    assert(spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.3.8")))
    refute(spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.0.2")))
    refute(spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.4.0")))
    files = package.contents
    assert_equal files, spec.files
    assert_equal ABIS.map { |abi| "lib/highball/#{abi}/highball_ext.so" }, files.grep(/\.so\z/)
    assert_equal ["libexec/highball"], files.grep(/\Alibexec/)
    %w[exe/highball lib/highball.rb lib/highball/boot.rb lib/rackup/handler/highball.rb LICENSE].each do |file|
      assert_includes files, file
    end
    assert_empty files.grep(/\.rs\z|extconf|Cargo|\A(?:bench|crates|ext|test)/)
    assert_operator File.size(native), :<, MOST_BYTES
    puts "#{File.basename(native)}: #{File.size(native)} bytes"
  end

  def test_it_runs_where_glibc_is_old
    unpacked(native) do |folder|
      each_program(folder) do |file|
        needed = tool("readelf", "--dynamic", "--wide", file).scan(/\(NEEDED\).*\[(.+)\]/).flatten
        assert_empty needed.grep_v(LIBRARIES), file
        versions = tool("readelf", "--version-info", "--wide", file).scan(/GLIBC_(\d[\d.]*)/).flatten.uniq
        refute_empty versions, file
        assert_empty(versions.select { |version| Gem::Version.new(version) > OLDEST_GLIBC }, file)
        refute_match(/\.(?:symtab|debug_\w+)\b/, tool("readelf", "--sections", "--wide", file), file)
        refute_includes File.binread(file), HighballServer::ROOT, "#{file} names a folder of this machine"
      end
    end
  end

  def test_it_lists_what_it_is_made_of
    bill = unpacked(native) { |folder| JSON.parse(File.read("#{folder}/sbom.cdx.json")) }
    assert_equal ["CycloneDX", "pkg:gem/highball@0.1.0?platform=x86_64-linux"],
                 [bill["bomFormat"], bill.dig("metadata", "component", "purl")]
    tokio = bill["components"].find { |component| component["name"] == "tokio" }
    locked = File.read(File.join(HighballServer::ROOT, "Cargo.lock"))[/^name = "tokio"\nversion = "(.+)"/, 1]
    assert_equal [locked, "MIT"], [tokio["version"], tokio.dig("licenses", 0, "expression")]
    assert_match(/\A\h{64}\z/, tokio.dig("hashes", 0, "content"))
    names = bill["components"].map { |component| component["name"] }
    assert_empty names & %w[highball-bench bindgen serde_derive]
    assert_empty %w[highball highball-ext magnus] - names
  end

  def test_it_is_the_same_when_it_is_built_again
    sums = File.read(File.join(NativeGem::FOLDER, "SHA256SUMS"))
    assert_includes sums, File.basename(native)
    tool("sha256sum", "--check", "SHA256SUMS", chdir: NativeGem::FOLDER)
    again = folder_with
    # What cargo has built stays, but in --full.
    target = LEVEL == "full" ? { "CARGO_TARGET_DIR" => File.join(again, "target") } : {}
    NativeGem.build("HIGHBALL_GEM_PLATFORMS" => "x86_64-linux", "HIGHBALL_GEM_FOLDER" => again, **target)
    assert_equal sums, File.read(File.join(again, "SHA256SUMS"))
  end

  private

  def native = NativeGem.path

  def debian(release, **options)
    @debians << CleanDebian.new(release, **options)
    debian = @debians.last
    tools = %w[cc gcc clang cargo rustc make].map { |name| "command -v #{name}" }.join(" || ")
    assert_raises(CleanDebian::Failed, "it has something to build with") { debian.run("sh", "-c", tools) }
    debian
  end

  # Installs the gem, and prints how long that took.
  def install(debian, gem = native)
    FileUtils.cp(gem, debian.path("tmp"))
    began = Deadline.now
    debian.run("gem", "install", "--local", "--no-document", "/tmp/#{File.basename(gem)}")
    seconds = Deadline.now - began
    puts format("gem install --local %<gem>s: %<seconds>.1f s", gem: File.basename(gem), seconds: seconds)
    assert_operator seconds, :<, INSTALLS_WITHIN
  end

  def serve_in(debian, app, *command)
    serve(debian.path(app), command: debian.command(*command, folder: app), env: CleanDebian::ENVIRONMENT)
  end

  def unpacked(gem)
    folder = folder_with
    Gem::Package.new(gem).extract_files(folder)
    yield folder
  end

  def each_program(folder, &block)
    programs = Dir[File.join(folder, "{libexec/*,lib/**/*.so}")]
    assert_equal 1 + ABIS.length, programs.length
    programs.each(&block)
  end

  def tool(*command, **options)
    output, status = Open3.capture2e(*command, **options)
    assert_predicate status, :success?, output
    output
  end
end
