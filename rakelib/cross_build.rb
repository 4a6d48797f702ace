# frozen_string_literal: true

require "fileutils"

# Builds the programs and extensions of a gem for a platform, with zig as the linker: its glibc is as old as Rust
# allows, so that what is built here runs on older systems. What it builds is stripped, and names no folder of this
# machine.
class CrossBuild
  # lg_page:: the largest page of memory that kernels for the platform have, as a power of two.
  Platform = Struct.new(:name, :target, :debian, :lg_page)
  PLATFORMS = [
    Platform.new("x86_64-linux", "x86_64-unknown-linux-gnu", "amd64", 12),
    Platform.new("aarch64-linux", "aarch64-unknown-linux-gnu", "arm64", 16)
  ].to_h { |platform| [platform.name, platform] }.freeze
  GLIBC = "2.17"
  # zig's compiler of C refuses AVX-512 in libdeflate, which then uses AVX2.
  DEFINES = %w[AVX512VNNI VPCLMULQDQ].map { |feature| "-DLIBDEFLATE_ASSEMBLER_DOES_NOT_SUPPORT_#{feature}" }.freeze
  ZIG = %w[cargo-zigbuild==0.24.0 ziglang==0.15.2].freeze

  # `cache` is for tools and headers, which stay the same from one build to the next.
  def initialize(platform, root:, cache:)
    @platform = platform
    @root = root
    @cache = cache
    @profile = ENV.fetch("HIGHBALL_PROFILE", "release")
    @target = File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), root)
  end

  # Builds a crate of the workspace in this folder, with the profiles of the tree, and returns the path of what it made.
  def build(crate, made, variables: {}, workspace: ".")
    ensure_tools
    command = ["cargo", "zigbuild", "--locked", "--config", "Cargo.toml", "--profile", @profile,
               "--manifest-path", "#{workspace}/Cargo.toml", "--target", "#{@platform.target}.#{GLIBC}", "-p", crate]
    system(environment.merge(variables), *command, chdir: @root) or
      raise "#{command.join(' ')} failed; its own message is above"
    File.join(@target, @platform.target, @profile, made)
  end

  private

  def environment
    profile = "CARGO_PROFILE_#{@profile.upcase}"
    { "#{profile}_STRIP" => "symbols", "#{profile}_DEBUG" => "false", "CARGO_ENCODED_RUSTFLAGS" => flags.join("\x1F"),
      "CFLAGS_#{@platform.target.tr('-', '_')}" => DEFINES.join(" "),
      "JEMALLOC_SYS_WITH_LG_PAGE" => @platform.lg_page.to_s,
      "CARGO_TARGET_DIR" => @target, "PATH" => "#{zig}/bin:#{ENV.fetch('PATH')}",
      "CARGO_ZIGBUILD_CACHE_DIR" => File.join(@cache, "zigbuild"),
      "ZIG_GLOBAL_CACHE_DIR" => File.join(@cache, "zig-cache"),
      "CARGO_ZIGBUILD_ZIG_PATH" => Dir["#{zig}/lib/python*/site-packages/ziglang/zig"].first }
  end

  # Panics name source files: not by the folders of this machine. Of folders within each other, the last one counts.
  def flags
    cargo = ENV.fetch("CARGO_HOME") { File.join(Dir.home, ".cargo") }
    { @root => "highball", cargo => "cargo", @target => "target" }.map do |from, to|
      "--remap-path-prefix=#{from}=/#{to}"
    end
  end

  def zig = File.join(@cache, "zig")

  def ensure_tools
    ensure_zig
    ensure_standard_library
  end

  def ensure_zig
    return if File.exist?(File.join(zig, "complete"))

    FileUtils.rm_rf(zig)
    FileUtils.mkdir_p(@cache)
    (system("python3", "-m", "venv", zig) && system("#{zig}/bin/pip", "install", "--quiet", *ZIG)) or
      raise "cannot install #{ZIG.join(' and ')}, which link for other platforms (Debian: apt-get install python3-venv)"
    FileUtils.touch(File.join(zig, "complete"))
  end

  # Rust's own libraries for the platform; those for this machine are always there.
  def ensure_standard_library
    command = ["rustc", "--print", "target-libdir", "--target", @platform.target]
    return if File.directory?(IO.popen(command, chdir: @root, &:read).strip)

    system("rustup", "target", "add", @platform.target, chdir: @root) or
      raise "Rust's libraries for #{@platform.target} are missing. To install them: rustup target add " \
            "#{@platform.target}, or with Debian's Rust: dpkg --add-architecture #{@platform.debian} && " \
            "apt-get update && apt-get install libstd-rust-dev:#{@platform.debian} (Debian 12: libstd-rust-web-dev)"
  end
end
