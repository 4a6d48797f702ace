# frozen_string_literal: true

require "json"
require "open3"
require "rubygems/package"
require_relative "../support/e2e_test"
require_relative "../support/native_gem"

# The gems that need no compiler, looked into: their files, their programs, their bill of materials.
class NativeGemTest < E2ETest
  ABIS = %w[3.1.0 3.3.0 3.4.0].freeze
  # What the loader finds on any Linux with glibc.
  LIBRARIES = /\A(?:libc|libm|libpthread|libdl|librt|libgcc_s|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d\z/
  OLDEST_GLIBC = Gem::Version.new("2.17")
  # What the tests build is hardly optimised, and up to twice as large as what users install.
  MOST_BYTES = { "release" => 8 * MIB, "testing" => 16 * MIB }.fetch(ENV.fetch("HIGHBALL_PROFILE", "release"))

  def test_it_holds_what_it_should
    package = Gem::Package.new(native)
    spec = package.spec
    assert_equal ["x86_64-linux", []], [spec.platform.to_s, spec.extensions]
    assert(spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.3.8")))
    refute(spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.0.2")))
    refute(spec.required_ruby_version.satisfied_by?(Gem::Version.new("3.5.0")))
    files = package.contents
    assert_equal files, spec.files
    extensions = ABIS.map { |abi| "lib/highball/#{abi}/highball_ext.so" }
    assert_equal [*extensions, "lib/highball/highball_jemalloc.so"], files.grep(/\.so\z/)
    assert_equal ["libexec/highball"], files.grep(/\Alibexec/)
    %w[exe/highball lib/highball.rb lib/highball/boot.rb lib/rackup/handler/highball.rb LICENSE
       share/man/man1/highball.1 share/completions/highball.bash].each do |file|
      assert_includes files, file
    end
    assert_empty files.grep(/\.rs\z|extconf|Cargo|\A(?:bench|crates|ext|test)/)
    assert_operator File.size(native), :<, MOST_BYTES
    puts "#{File.basename(native)}: #{File.size(native)} bytes"
  end

  { "x86_64-linux" => "X86-64", "aarch64-linux" => "AArch64" }.each do |platform, machine|
    define_method("test_it_runs_where_glibc_is_old_on_#{platform}") do
      very_long if platform == "aarch64-linux"
      gem = NativeGem.path(platform)
      skip "needs Rust's libraries for #{platform}" unless File.exist?(gem)
      unpacked(gem) { |folder| each_program(folder) { |file| assert_runs_where_glibc_is_old(file, machine) } }
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

  def test_it_is_checked_by_its_sum
    assert_includes File.read(File.join(NativeGem::FOLDER, "SHA256SUMS")), File.basename(native)
    tool("sha256sum", "--check", "SHA256SUMS", chdir: NativeGem::FOLDER)
  end

  # Built from a copy of the sources in another folder, where nothing is built yet.
  def test_it_is_the_same_when_it_is_built_elsewhere
    very_long
    copy = folder_with
    files = tool("git", "ls-files", "-z", chdir: HighballServer::ROOT).split("\0")
    files.each do |file|
      FileUtils.mkdir_p(File.dirname("#{copy}/#{file}"))
      FileUtils.cp(File.join(HighballServer::ROOT, file), "#{copy}/#{file}")
    end
    epoch = tool("git", "log", "-1", "--format=%ct", chdir: HighballServer::ROOT).strip
    NativeGem.build(root: copy, "HIGHBALL_GEM_PLATFORMS" => "x86_64-linux", "SOURCE_DATE_EPOCH" => epoch,
                    "HIGHBALL_GEM_FOLDER" => copy, "CARGO_TARGET_DIR" => "#{copy}/target")
    assert_equal Digest::SHA256.file(native), Digest::SHA256.file(File.join(copy, File.basename(native)))
  end

  private

  def native = NativeGem.path

  def unpacked(gem)
    folder = folder_with
    Gem::Package.new(gem).extract_files(folder)
    yield folder
  end

  def assert_runs_where_glibc_is_old(file, machine)
    assert_match(/Machine: .*#{machine}$/, tool("readelf", "--file-header", file), file)
    needed = tool("readelf", "--dynamic", "--wide", file).scan(/\(NEEDED\).*\[(.+)\]/).flatten
    assert_empty needed.grep_v(LIBRARIES), file
    versions = tool("readelf", "--version-info", "--wide", file).scan(/GLIBC_(\d[\d.]*)/).flatten.uniq
    refute_empty versions, file
    assert_empty(versions.select { |version| Gem::Version.new(version) > OLDEST_GLIBC }, file)
    refute_match(/\.(?:symtab|debug_\w+)\b/, tool("readelf", "--sections", "--wide", file), file)
    refute_includes File.binread(file), HighballServer::ROOT, "#{file} names a folder of this machine"
  end

  def each_program(folder, &block)
    programs = Dir[File.join(folder, "{libexec/*,lib/**/*.so}")]
    assert_equal 1 + ABIS.length + 1, programs.length # the server, an extension for each Ruby, jemalloc
    programs.each(&block)
  end

  def tool(*command, **options)
    output, status = Open3.capture2e(*command, **options)
    assert_predicate status, :success?, output
    output
  end
end
