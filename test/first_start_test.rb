# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "open3"
require "tmpdir"

# bin/highball and bin/setup in a tree where nothing is built yet. A fake cargo notes what it is asked to build.
class FirstStartTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  CARGO = <<~'SH'
    #!/bin/sh
    case $1 in
      --version) echo "cargo 1.85.0"; exit ;;
    esac
    echo "$*" >>"$0.asked"
    folder=$CARGO_TARGET_DIR/$3
    mkdir -p "$folder"
    printf '#!/bin/sh\necho "this is %s: $*"\n' "$3" >"$folder/highball"
    chmod 755 "$folder/highball"
    touch "$folder/libhighball_ext.so" "$folder/libhighball_jemalloc.so"
  SH

  def setup
    @root = Dir.mktmpdir("highball's first start, größe") # a tree may lie anywhere
    FileUtils.mkdir_p(%w[bench/src bench/floor crates ext lib tools target].map { |name| File.join(@root, name) })
    FileUtils.cp_r(File.join(ROOT, "bin"), @root)
    FileUtils.touch(%w[Cargo.toml Cargo.lock bench/Cargo.lock].map { |name| File.join(@root, name) })
    File.write(cargo, CARGO)
    File.chmod(0o755, cargo)
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def test_the_first_start_is_a_quick_build
    output = highball("status")
    assert_includes output, "a quick build that serves somewhat slower than a release; bin/setup builds the release"
    assert_match(/this is first: status/, output)
    packages = "-p highball -p highball-ext --no-default-features --features highball/ring"
    assert_equal ["build --profile first #{packages}"], asked
    assert_match(/\Athis is first: stop\n\z/, highball("stop"))
    assert_equal 1, asked.length
  end

  def test_a_release_is_run_where_there_is_one
    setup_tree
    packages = %w[highball highball-ext highball-jemalloc]
    assert_equal ["build --profile release #{packages.map { |name| "-p #{name}" }.join(' ')}"], asked
    assert_equal "this is release: status\n", highball("status")
    FileUtils.touch(File.join(@root, "crates/changed.rs"))
    assert_match(/this is first: status/, highball("status"))
  end

  def test_what_is_measured_is_a_release
    highball("status")
    assert_match(/this is release: bench list/, highball("bench", "list"))
    assert_equal %w[first release release], profiles
    assert_includes asked.last, "--manifest-path bench/Cargo.toml"
    assert_equal "this is release: bench run\n", highball("bench", "run")
    FileUtils.touch(File.join(@root, "bench/src/changed.rs"))
    assert_equal "this is release: status\n", highball("status")
    assert_match(/this is release: bench list/, highball("bench", "list"))
    assert_equal 5, asked.length
  end

  def test_the_benchmark_is_built_for_its_command_alone
    setup_tree
    assert_equal 1, asked.length
    assert_match(/this is release: bench list/, highball("bench", "list"))
    assert_includes asked.last, "--manifest-path bench/Cargo.toml"
  end

  def test_another_profile_is_obeyed
    assert_match(/this is testing: status/, highball("status", "HIGHBALL_PROFILE" => "testing"))
    assert_match(/this is testing: bench/, highball("bench", "HIGHBALL_PROFILE" => "testing"))
    assert_equal %w[testing testing testing], profiles
    assert_match(/this is first: status/, highball("status"))
  end

  private

  def cargo = File.join(@root, "tools/cargo")

  def asked = File.readlines("#{cargo}.asked", chomp: true)

  def profiles = asked.map { |line| line[/--profile (\w+)/, 1] }

  def highball(*arguments, **environment) = run_script("highball", *arguments, **environment)

  def setup_tree = run_script("setup")

  # `environment` has names of variables as strings.
  def run_script(name, *arguments, **environment)
    env = { "PATH" => "#{@root}/tools:#{ENV.fetch('PATH')}", "CARGO_TARGET_DIR" => File.join(@root, "target"),
            "HIGHBALL_PROFILE" => nil, "HIGHBALL_RUBY" => nil }.merge(environment)
    output, status = Open3.capture2e(env, File.join(@root, "bin", name), *arguments, chdir: @root)
    assert_predicate status, :success?, output
    output
  end
end
