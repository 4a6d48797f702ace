# frozen_string_literal: true

require "minitest/autorun"
require "open3"

# What is built into the server, and what is not.
class CratesTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  BENCH = File.join(ROOT, "crates/bench/Cargo.toml")
  # Crates that the server is made of, of this tree.
  OWN = (Dir[File.join(ROOT, "crates/*/Cargo.toml")] - [BENCH]).freeze

  def test_the_server_has_nothing_of_the_benchmark
    server = crates_of("highball")
    assert_includes server, "highball-front"
    assert_includes server, "highball-proc"
    of_bench_alone = dependencies(BENCH) - OWN.flat_map { |manifest| dependencies(manifest) }
    refute_empty of_bench_alone
    assert_empty server & ["highball-bench", *of_bench_alone]
  end

  private

  # The names of all crates that this one is built from.
  def crates_of(name)
    command = ["cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}", "-p", name]
    output, errors, status = Open3.capture3(*command, chdir: ROOT)
    assert_predicate status, :success?, errors
    output.lines.map { |line| line[/\S+/] }.uniq
  end

  # What a manifest names under [dependencies].
  def dependencies(manifest)
    section = File.read(manifest)[/^\[dependencies\]\n(.*?)(?=^\[|\z)/m, 1].to_s
    section.scan(/^([\w-]+)(?:\.workspace)? =/).flatten
  end
end
